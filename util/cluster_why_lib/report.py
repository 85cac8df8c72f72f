"""What is known about the processes of a node that have endpoints of the provider, or that a launcher started as ranks.

Reports come from other nodes as JSON. `read` is their gate: it checks type, size and characters of every field, and ignores
fields that it does not know.
"""
import typing
from typing import List, NamedTuple

TEXT_MAX = 1000
ENTRIES_MAX = 1 << 16
ANY = "any"  # the peer of a receive that takes messages from any peer


class Malformed(Exception):
    """A report that no version of this program writes."""


class Operation(NamedTuple):
    """What is in progress, as cluster-info shows it. `count` operations differ only in their age."""
    kind: str
    peer: str
    waits_for: str
    bytes: int = 0
    done_bytes: int = 0
    tag: int = -1  # -1: without a tag
    age_s: float = 0.0  # of the oldest; 0: less than half a second
    count: int = 1


class Peer(NamedTuple):
    """What an endpoint knows about a peer."""
    address: str
    path: str = ""
    lost: str = ""  # why
    lost_s: float = 0.0
    silent_s: float = 0.0  # 0: never heard over the network
    owes: bool = False  # an acknowledgement
    unread: bool = False  # it leaves messages in its ring of shared memory


class Message(NamedTuple):
    """A message that no receive has matched."""
    peer: str
    bytes: int = 0
    tag: int = -1


class Connection(NamedTuple):
    """A TCP connection of a launcher on which nothing answers."""
    source: str
    to: str
    retransmissions: int = 0


class Launcher(NamedTuple):
    """The nearest launcher above a process; pid 0: none."""
    pid: int = 0
    command: str = ""
    state: str = ""
    ports: List[int] = []  # those that its command line mentions: of the launcher above it
    silent: List[Connection] = []


class Process(NamedTuple):
    """A process; `addresses` are those of its endpoints. `no_call_s` is 0 while it makes calls, or if that is unknown."""
    node: str
    pid: int
    command: str = ""
    uid: int = 0
    job: str = ""
    rank: int = -1
    size: int = 0
    state: str = ""
    stop_signal: int = 0
    tracer: int = 0
    sleeps_in: str = ""
    ancestors: List[int] = []
    launcher: Launcher = Launcher()
    addresses: List[str] = []
    hosts: List[str] = []  # of all its peers
    trouble: str = ""  # why an endpoint sent no report
    no_call_s: float = 0.0
    operations: List[Operation] = []
    peers: List[Peer] = []
    messages: List[Message] = []


class Node(NamedTuple):
    """A node that was asked. If it did not answer, `trouble` says why, and `since_s` for how long it is known to be down."""
    name: str
    addresses: List[str] = []
    trouble: str = ""
    down: bool = False
    since_s: float = 0.0
    processes: List[Process] = []


def host_of(address):
    """The IP address of 10.0.0.1:5000 or [fe80::1]:5000."""
    return address.rpartition(":")[0].strip("[]")


def _need(condition, what):
    if not condition:
        raise Malformed(f"the report is malformed: {what}")


def _field(kind, value, name):
    if typing.get_origin(kind) is list:
        _need(isinstance(value, list) and len(value) <= ENTRIES_MAX, name)
        return [_field(typing.get_args(kind)[0], entry, name) for entry in value]
    if kind is str:
        _need(isinstance(value, str) and len(value) <= TEXT_MAX and value.isprintable(), name)
    elif kind is bool:
        _need(isinstance(value, bool), name)
    elif kind in (int, float):
        _need(isinstance(value, (int, kind)) and not isinstance(value, bool) and -1 <= value < 2**64, name)
    else:
        return read(kind, value)
    return value


def read(kind, value):
    """A value of JSON as one of these types; Malformed if it is none."""
    _need(isinstance(value, dict), kind.__name__)
    hints, defaults = typing.get_type_hints(kind), kind._field_defaults
    for name in kind._fields:
        _need(name in value or name in defaults, f"{kind.__name__} without {name}")
    return kind(**{name: _field(hints[name], value[name], name) for name in kind._fields if name in value})


def write(value):
    """One of these types as a value of JSON, without what has its default."""
    if isinstance(value, tuple):
        return {name: write(getattr(value, name)) for name in value._fields
                if name not in value._field_defaults or getattr(value, name) != value._field_defaults[name]}
    return [write(entry) for entry in value] if isinstance(value, list) else value
