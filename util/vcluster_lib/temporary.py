"""Clusters that live as long as one process: for the demo, the benchmark and the tests.

Their names contain the process id of their owner. If the owner is killed before it can remove its cluster, the next
user does."""
import atexit
import json
import os
import re
import signal
import subprocess
import sys

from cluster_lib import processes

from . import network, state

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "vcluster")
_NAME = re.compile(r"(?:ctest|demo|perf)-(\d+)(?:-.*)?")
_SECONDS_MAX = 60


def vcluster(*arguments, **options):
    return subprocess.run([sys.executable, "-B", TOOL, *arguments], text=True, check=False, **options)


def unavailable_reason():
    """Why no virtual nodes can be made here, in a few words; empty when they can."""
    if os.geteuid() != 0:
        return "virtual nodes need root"
    probe = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "true"], capture_output=True, check=False)
    return "" if probe.returncode == 0 else "the kernel allows no new namespaces here"


def remove_orphans():
    """Removes clusters whose owner has ended."""
    for name in state.names():
        match = _NAME.fullmatch(name)
        if match and not os.path.exists(f"/proc/{match.group(1)}"):
            vcluster("down", "--name", name, capture_output=True)


class Cluster:
    """A running cluster, by name."""

    def __init__(self, name):
        self.name = name
        self.record = state.running(name)
        self._agents_run = False

    def _holder(self, node):
        return self.record["switch"] if node == "switch" else state.node(self.record, str(node))

    def namespace(self, node):
        """Path of the network namespace of a node."""
        return f"/proc/{self._holder(node)['pid']}/ns/net"

    def address(self, node, rail=0):
        return network.address(self.record["subnet"], rail, self.record["nodes"].index(self._holder(node)) + 1)

    def command(self, node, *words):
        """Words that run a command in a node (1, 2... or `switch`, which has a network namespace only)."""
        kinds = ["--net"] if node == "switch" else ["--net", "--uts", "--ipc", "--mount"]
        # nsenter, not `vcluster exec`: that saves starting an interpreter, and some tests run hundreds of commands.
        return ["nsenter", "--target", str(self._holder(node)["pid"]), *kinds, f"--wdns={os.getcwd()}", "env",
                f"TMPDIR={os.path.join(state.directory(self.name), 'tmp')}", *words]

    def run(self, node, *words, **options):
        """The output of a command in a node; it must succeed."""
        return subprocess.run(self.command(node, *words), check=True, capture_output=True, text=True,
                              timeout=_SECONDS_MAX, **options).stdout

    def links(self, node):
        """`ip -statistics link` of a node: interface name -> its data."""
        return {entry["ifname"]: entry for entry in json.loads(self.run(node, "ip", "-s", "-json", "link", "show"))}

    def mpirun(self, *words):
        return [sys.executable, "-B", TOOL, "mpirun", "--name", self.name, *words]

    def faults(self, *options):
        """Runs `vcluster faults`; returns its output."""
        result = vcluster("faults", "--name", self.name, *options, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip())
        return result.stdout

    def fault_counts(self, *options):
        """The counts of every place, one dictionary each."""
        return [place["counts"] for place in json.loads(self.faults("--list", "--json", *options))]

    def listens(self, node, port):
        """True if a TCP socket of the node listens on the port."""
        return processes.listens(self._holder(node)["pid"], port)

    def sockets(self, node, table):
        """The lines of /proc/net/TABLE in a node, one per socket."""
        return processes.sockets(self._holder(node)["pid"], table)

    def set_agents(self, running):
        """Starts or stops the agents of all nodes, unless they are already in that state; raises RuntimeError with the
        reason."""
        if running != self._agents_run:
            result = vcluster("agents", "--name", self.name, "--start" if running else "--stop", "all", capture_output=True)
            if result.returncode != 0:
                raise RuntimeError(result.stderr.strip())
            self._agents_run = running

    def down(self):
        vcluster("down", "--name", self.name, capture_output=True)


def make(kind, nodes, *options, suffix="", owner=None):
    """Makes a cluster that ends with its owner (a process id; default: this process, which then takes it down itself).

    Raises RuntimeError with the reason when that is not possible."""
    name = f"{kind}-{owner or os.getpid()}{suffix}"
    if owner is None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            # The handler ends the process by exit(), so that the functions registered with atexit run.
            signal.signal(number, lambda got, _: sys.exit(128 + got))
        atexit.register(vcluster, "down", "--name", name, capture_output=True)
    result = vcluster("up", "--name", name, "-n", str(nodes), *options, capture_output=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())
    return Cluster(name)
