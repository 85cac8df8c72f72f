"""The peers: what each is and how it is set up. A transport is named as its users know it."""
import os
import re
from dataclasses import dataclass, field, replace

from cluster_lib import build
from cluster_lib.environment import of_provider, without_settings

INSIDE, BETWEEN = "inside", "between"
AGENTS = "/agents"  # suffix of a transport measured beside running agents
KEYED = ("/auth", "/encrypt")  # suffix of a transport whose endpoints have a key: the value of FI_CLUSTER_SECURITY
CROWD_RANKS = 8  # ranks of jobs of kind `crowd`, unless the user asks for others
_MIB = 1 << 20


@dataclass(frozen=True)
class Transport:
    name: str
    places: tuple
    kind: str  # fabric (any libfabric provider), mpi, crowd (MPI with more ranks than processors), ucx, or bare
    provider: str = ""
    needs_address: bool = False  # the provider needs the address of an interface
    environment: dict = field(default_factory=dict)
    arguments: tuple = ()  # of the program, or of mpirun
    bytes_max: int = 64 * _MIB
    library: str = ""  # directory of another libfabric
    unasked: bool = True  # measured even if not named by --peers
    agents: bool = False  # the agents (clusterd) of the nodes run meanwhile
    over_ip: bool = False  # the addresses are those of cluster-ip, which runs on the nodes meanwhile
    device: bool = False  # measured between two RDMA devices (--devices), and nowhere else

    @property
    def level(self):
        return self.kind if self.kind in ("mpi", "crowd", "bare") else "fabric"

    @property
    def is_ours(self):
        return self.name.removeprefix("mpi:").partition("/")[0] == "cluster"


_CM = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster")
_OB1 = ("--mca", "pml", "ob1", "--mca", "btl")
# Waiting ranks yield, as Open MPI does by itself when it knows that ranks outnumber processors.
_YIELD = ("--mca", "mpi_yield_when_idle", "1")
_PACKET, _UDP = {"FI_CLUSTER_LINK": "packet"}, {"FI_CLUSTER_LINK": "udp"}
# UCX drops datagrams by bytes that soft-RoCE leaves undefined: the first of the routing header, before an IPv4 header. Its reliable queue
# pairs connect by datagrams, too.
_UCX_UD = {"UCX_UD_VERBS_ETH_DGID_CHECK": "n"}
_VERBS = {"FI_CLUSTER_LINK": "verbs", "FI_CLUSTER_SHM": "no"}  # both devices may belong to one node

_KNOWN = [
    Transport("cluster", (INSIDE,), "fabric", "cluster"),
    Transport("cluster/safe", (INSIDE,), "fabric", "cluster", arguments=("--threading", "safe"), unasked=False),
    Transport("cluster/packet", (BETWEEN,), "fabric", "cluster", environment=_PACKET),
    Transport("cluster/udp", (BETWEEN,), "fabric", "cluster", environment=_UDP),
    Transport("cluster/verbs", (BETWEEN,), "fabric", "cluster", environment=_VERBS, device=True),
    Transport("shm", (INSIDE,), "fabric", "shm"),
    Transport("tcp", (INSIDE, BETWEEN), "fabric", "tcp;ofi_rxm", needs_address=True),
    Transport("tcp/cluster-ip", (BETWEEN,), "fabric", "tcp;ofi_rxm", needs_address=True, unasked=False, over_ip=True),
    # rxd is two orders of magnitude slower with large messages: beyond 1 MB it would take all the time.
    Transport("rxd", (INSIDE, BETWEEN), "fabric", "udp;ofi_rxd", needs_address=True, bytes_max=_MIB),
    Transport("psm3", (INSIDE, BETWEEN), "fabric", "psm3", environment={"PSM3_HAL": "sockets"}),
    Transport("ucx", (INSIDE,), "ucx", environment={"UCX_TLS": "shm,self"}),
    Transport("ucx", (BETWEEN,), "ucx", environment={"UCX_TLS": "tcp,self"}),
    # ofi_rxm asks for a completion queue for 256 peers, which is longer than the 32,767 entries of soft-RoCE.
    Transport("verbs", (BETWEEN,), "fabric", "verbs;ofi_rxm", needs_address=True, environment={"FI_UNIVERSE_SIZE": "2"}, device=True),
    Transport("ucx/rc", (BETWEEN,), "ucx", environment={"UCX_TLS": "rc,self", **_UCX_UD}, device=True),
    Transport("ucx/ud", (BETWEEN,), "ucx", environment={"UCX_TLS": "ud,self", **_UCX_UD}, device=True),
    Transport("mpi:cluster", (INSIDE,), "mpi", "cluster", arguments=_CM),
    Transport("mpi:cluster/packet", (BETWEEN,), "mpi", "cluster", environment=_PACKET, arguments=_CM),
    Transport("mpi:cluster/udp", (BETWEEN,), "mpi", "cluster", environment=_UDP, arguments=_CM),
    Transport("mpi:vader", (INSIDE,), "mpi", arguments=(*_OB1, "vader,self")),
    Transport("mpi:tcp", (INSIDE, BETWEEN), "mpi", arguments=(*_OB1, "tcp,self")),
    Transport("mpi:cluster", (INSIDE,), "crowd", "cluster", arguments=(*_CM, *_YIELD)),
    Transport("mpi:cluster/packet", (BETWEEN,), "crowd", "cluster", environment=_PACKET, arguments=(*_CM, *_YIELD)),
    Transport("mpi:cluster/udp", (BETWEEN,), "crowd", "cluster", environment=_UDP, arguments=(*_CM, *_YIELD)),
    Transport("mpi:vader", (INSIDE,), "crowd", arguments=(*_OB1, "vader,self", *_YIELD)),
    Transport("mpi:vader+tcp", (BETWEEN,), "crowd", arguments=(*_OB1, "vader,tcp,self", *_YIELD)),
    Transport("bare", (INSIDE, BETWEEN), "bare"),
]


def names():
    return list(dict.fromkeys(transport.name for transport in _KNOWN))


def of_name(name):
    return [transport for transport in _KNOWN if transport.name == name]


def _of_library(label, directory):
    """The peers of another libfabric, named tcp@LABEL and so on."""
    for transport in _KNOWN:
        if transport.kind == "fabric" and not transport.is_ours:
            yield Transport(f"{transport.name}@{label}", transport.places, "fabric", transport.provider,
                            transport.needs_address, {**transport.environment, "LD_LIBRARY_PATH": directory},
                            transport.arguments, transport.bytes_max, directory, device=transport.device)


def choose(place, asked, libraries, devices=False):
    """Transports of a place in the order of the table; `asked` are names, or None for the usual ones. `devices`: those between two
    RDMA devices, else those that need none."""
    known = list(_KNOWN)
    for label, directory in libraries:
        known += _of_library(label, directory)
    usual = [transport for transport in known if place in transport.places and transport.device == devices]
    if asked is None:
        return [transport for transport in usual if transport.unasked]
    return [transport for transport in usual if any(_is_named(transport, name) for name in asked)]


def _is_named(transport, asked):
    """`tcp` means tcp of every libfabric, `cluster` means whatever it runs over."""
    return transport.name == asked or (transport.unasked and re.split("[@/]", transport.name)[0] == asked)


def with_agents(transport):
    return replace(transport, name=transport.name + AGENTS, agents=True)


def with_key(transport, end):
    # The key is for this measurement only and protects nothing.
    return replace(transport, name=transport.name + end, environment={
        **transport.environment, "FI_CLUSTER_KEY": "5e" * 32, "FI_CLUSTER_SECURITY": end.removeprefix("/")})


def asleep(transport, library):
    """MPI that sleeps while it waits. Open MPI yields when it is idle, and the library sleeps in its place until a datagram has arrived."""
    return replace(transport, arguments=(*transport.arguments, *_YIELD, "-x", f"LD_PRELOAD={library}"))


def environment(transport, directory):
    """The environment of this process without settings that would change the transport, and with those of this
    transport."""
    ours = transport.provider == "cluster"
    values = of_provider(os.path.dirname(build.path("cluster-fi", directory))) if ours else without_settings()
    return {**values, **transport.environment}
