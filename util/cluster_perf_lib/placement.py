"""Where the two sides run: both in one node, or in two virtual nodes with an Ethernet between them."""
import os

from vcluster_lib import temporary

from .errors import PerfError
from .transports import BETWEEN, INSIDE


class Place:
    """How a command is started on either side (0 and 1), and how the sides reach each other."""

    def __init__(self, name, cluster=None):
        self.name = name
        self.cluster = cluster  # None: this machine itself
        self._nodes = (1, 2) if name == BETWEEN else (1, 1)

    def command(self, side, words):
        return self.cluster.command(self._nodes[side], *words) if self.cluster else list(words)

    def set_agents(self, running):
        """Starts or stops the agents of the nodes, unless they are already in that state."""
        if self.cluster:
            self.cluster.set_agents(running)

    def address(self, side):
        return self.cluster.address(self._nodes[side]) if self.cluster else "127.0.0.1"

    def mpirun(self, words):
        if not self.cluster:
            return ["mpirun", "--oversubscribe", "--bind-to", "none", *words]
        on = ",".join(f"node{number}" for number in sorted(set(self._nodes)))
        return self.cluster.mpirun("--on", on, *words)


def make(names, mtu, rails, rate, say, kind="perf"):
    """The requested places that are possible here."""
    reason = temporary.unavailable_reason()
    if reason:
        if INSIDE not in names:
            raise PerfError(f"{reason}: nothing can be measured between nodes; --places inside can")
        say(f"no virtual nodes: {reason}; measuring inside this machine only")
        return [Place(INSIDE)]
    temporary.remove_orphans()
    shape = ["--mtu", str(mtu), "--rails", str(rails)] + (["--rate", rate] if rate else [])
    try:
        cluster = temporary.make(kind, 2, *shape)
    except RuntimeError as error:
        raise PerfError(f"no virtual nodes could be made: {error}") from error
    return [Place(name, cluster) for name in names]


def processors():
    """The two processors to measure; both the same where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1] if len(allowed) > 1 else allowed[0])
