"""Chooses the queue that runs the jobs of this page."""
import subprocess

from .gridengine import GridEngineQueue
from .own_queue import OwnQueue
from .slurm import SlurmQueue
from .slurm_rest import SlurmRestQueue

_ASK_SECONDS = 10


def _answers(*words):
    try:
        return subprocess.run(words, capture_output=True, timeout=_ASK_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def choose(settings, cluster):
    """Returns None if the operator wants no jobs."""
    if settings.jobs == "none":
        return None
    if settings.jobs == "slurmrest":
        return SlurmRestQueue(settings)
    if settings.jobs == "slurm" or settings.jobs == "auto" and _answers("sinfo", "--noheader"):
        return SlurmQueue(settings)
    if settings.jobs == "gridengine" or settings.jobs == "auto" and _answers("qhost"):
        return GridEngineQueue(settings)
    return OwnQueue(settings, cluster)
