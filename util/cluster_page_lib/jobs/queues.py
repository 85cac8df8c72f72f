"""Chooses the queue that runs the jobs of this page."""
import subprocess

from .own_queue import OwnQueue
from .slurm import SlurmQueue

_ASK_SECONDS = 10


def _slurm_answers():
    try:
        return subprocess.run(["sinfo", "--noheader"], capture_output=True, timeout=_ASK_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def choose(settings, cluster):
    """Returns None if the operator wants no jobs."""
    if settings.jobs == "none":
        return None
    if settings.jobs == "slurm" or settings.jobs == "auto" and _slurm_answers():
        return SlurmQueue(settings)
    return OwnQueue(settings, cluster)
