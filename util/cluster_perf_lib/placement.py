"""Where the sides run: both in one node, in virtual nodes with an Ethernet between them, or at two RDMA devices of this machine."""
import glob
import json
import os
import re
import shutil
import subprocess
import time

from cluster_lib import build
from cluster_lib.environment import of_provider

from vcluster_lib import temporary

from .errors import PerfError, Skipped
from .processes import Child
from .transports import BETWEEN, INSIDE

_IP_SECONDS = 20  # until the daemons of cluster-ip know each other


class Place:
    """How a command is started on either side (0 and 1), and how the sides reach each other. MPI jobs use all of the nodes."""

    devices = False  # the sides are at RDMA devices

    def __init__(self, name, cluster=None, nodes=(1, 2)):
        self.name = name
        self.cluster = cluster  # None: this machine itself
        self._nodes = nodes if name == BETWEEN else (1, 1)
        self._ip_daemons = []

    def command(self, side, words):
        return self.cluster.command(self._nodes[side], *words) if self.cluster else list(words)

    def set_agents(self, running):
        """Starts or stops the agents of the nodes, unless they are already in that state."""
        if self.cluster:
            self.cluster.set_agents(running)

    def set_ip(self, directory):
        """Starts cluster-ip, of this build, in the nodes, or with None ends it."""
        if directory is None:
            for daemon in self._ip_daemons:
                daemon.process.terminate()
                daemon.finish(_IP_SECONDS)
            self._ip_daemons = []
        elif not self._ip_daemons:
            provider = os.path.dirname(build.path("cluster-fi", directory))
            program = (shutil.which("cluster-ip") or "cluster-ip") if build.installed else build.path("cluster-ip", directory)
            if not os.path.exists(program):
                raise Skipped(f"{program} is not there")
            nodes = ",".join(f"node{node}" for node in self._nodes)
            for side, node in enumerate(self._nodes):
                words = [program, "--address", f"{self.address(side, over_ip=True)}/24", "--nodes", nodes]
                self._ip_daemons.append(Child(self.cluster.command(node, *words), of_provider(provider)))
            self._await_ip()

    def _await_ip(self):
        end = time.monotonic() + _IP_SECONDS
        while not all(any("is up:" in line for line in daemon.error_lines) for daemon in self._ip_daemons):
            if time.monotonic() > end or any(daemon.process.poll() is not None for daemon in self._ip_daemons):
                said = [line for daemon in self._ip_daemons for line in daemon.error_lines]
                self.set_ip(None)
                raise Skipped(f"cluster-ip does not run here: {said[-1] if said else 'it says nothing'}")
            time.sleep(0.02)

    def address(self, side, over_ip=False):
        if over_ip:
            return f"10.9.0.{self._nodes[side]}"
        return self.cluster.address(self._nodes[side]) if self.cluster else "127.0.0.1"

    def mpirun(self, words):
        if not self.cluster:
            return ["mpirun", "--oversubscribe", "--bind-to", "none", *words]
        on = ",".join(f"node{number}" for number in sorted(set(self._nodes)))
        return self.cluster.mpirun("--on", on, *words)


class Devices(Place):
    """Two interfaces of this machine with an RDMA device each. A cable joins them, or they are the ends of a veth pair with a soft-RoCE
    device on either (rdma-link(8))."""

    devices = True

    def __init__(self, interfaces):
        super().__init__(BETWEEN)
        self._sides = [(interface, _address_of(interface), _device_of(interface)) for interface in interfaces]

    def command(self, side, words):
        interface, _address, device = self._sides[side]
        return ["env", f"FI_CLUSTER_IFACE={interface}", f"UCX_NET_DEVICES={device}", *words]

    def address(self, side, over_ip=False):
        return self._sides[side][1]


def _address_of(interface):
    shown = subprocess.run(["ip", "-j", "-4", "address", "show", "dev", interface], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise PerfError(f"--devices: there is no interface {interface}")
    addresses = [each["local"] for entry in json.loads(shown.stdout) for each in entry.get("addr_info", [])]
    if not addresses:
        raise PerfError(f"--devices: {interface} has no IPv4 address")
    return addresses[0]


def _device_of(interface, root="/sys/class/infiniband"):
    """The RDMA device of an interface and its port, as UCX names them: mlx5_0:1."""
    for path in sorted(glob.glob(os.path.join(root, "*/ports/*/gid_attrs/ndevs/*"))):
        try:
            with open(path, encoding="ascii") as file:
                found = file.read().strip() == interface
        except OSError:  # an unused place of the table
            continue
        if found:
            device, port = re.search(r"/([^/]+)/ports/(\d+)/gid_attrs/", path).groups()
            return f"{device}:{port}"
    raise PerfError(f"--devices: {interface} has no RDMA device (\"rdma link\" lists them)")


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
