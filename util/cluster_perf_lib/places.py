"""Where the two sides run: both in one node, or in two virtual nodes with an Ethernet between them."""
import json
import os
import sys

from vcluster_lib import temporary

from .errors import PerfError
from .transports import BETWEEN, INSIDE


class Place:
    """How a command is started on either side, and how the sides reach each other."""

    def __init__(self, name, cluster, addresses):
        self.name = name
        self.cluster = cluster  # name of the virtual cluster; empty: this machine itself
        self.addresses = addresses  # of the first and of the second side

    def command(self, side, words):
        if not self.cluster:
            return list(words)
        node = "node2" if side == 1 and self.name == BETWEEN else "node1"
        return [sys.executable, temporary.TOOL, "exec", "--name", self.cluster, node, "--", *words]

    def address(self, side):
        return self.addresses[side]

    def mpirun(self, words):
        if not self.cluster:
            return ["mpirun", "--oversubscribe", "--bind-to", "none", *words]
        on = "node1,node2" if self.name == BETWEEN else "node1"
        return [sys.executable, temporary.TOOL, "mpirun", "--name", self.cluster, "--on", on, *words]


def make(names, mtu, rails, rate, say):
    """The places that are possible here out of those asked for."""
    reason = temporary.unavailable_reason()
    if reason:
        if INSIDE not in names:
            raise PerfError(f"{reason}: nothing can be measured between nodes; --places inside can")
        say(f"no virtual nodes: {reason}; measuring inside this machine only")
        return [Place(INSIDE, "", ("127.0.0.1", "127.0.0.1"))]
    temporary.remove_orphans()
    shape = ["--mtu", str(mtu), "--rails", str(rails)] + (["--rate", rate] if rate else [])
    try:
        cluster = temporary.make("perf", 2, *shape)
    except RuntimeError as error:
        raise PerfError(f"no virtual nodes could be made: {error}") from error
    listed = temporary.vcluster("list", "--json", capture_output=True)
    nodes = next(entry["nodes"] for entry in json.loads(listed.stdout) if entry["name"] == cluster)
    first, second = (node["addresses"][0] for node in nodes)
    places = {INSIDE: Place(INSIDE, cluster, (first, first)), BETWEEN: Place(BETWEEN, cluster, (first, second))}
    return [places[name] for name in names]


def processors():
    """The two processors that are measured; both the same where there is only one."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1] if len(allowed) > 1 else allowed[0])
