"""Which queue runs the jobs of this page."""
from .own_queue import OwnQueue


def choose(settings, cluster):
    """None where no jobs are wanted."""
    if settings.jobs == "none":
        return None
    return OwnQueue(settings, cluster)
