"""The sentences below the table of the demo: which lines each of ours wins, which a peer wins, and why.

One wins a line if it is ahead of the other by more than the spread of both."""
from dataclasses import dataclass

from .rows import ratio_text, rows, transport_text
from .samples import is_ours
from .transports import BETWEEN, INSIDE

_PLACES = {INSIDE: "Inside a node", BETWEEN: "Between nodes"}
_SHARED_CACHE_NS = 60  # a cache line takes 20 to 40 ns between processors that share a cache, 100 to 120 between others
_LARGE = 64 << 10


@dataclass(frozen=True)
class _Reason:
    place: str
    ours: str
    peer: str
    measures: tuple
    least: int  # bytes of a message, from here
    most: int  # up to here
    text: str


_ANY = 1 << 62
_BEHIND = (
    _Reason(INSIDE, "cluster", "vader", ("latency", "rate"), 0, _LARGE - 1,
            "Open MPI calls its own shared memory directly, and cluster through libfabric"),
    _Reason(BETWEEN, "cluster/udp", "tcp", ("latency",), 0, _LARGE - 1,
            "a datagram passes the kernel's IP as TCP does, and header and checksum of cluster come on top"),
    _Reason(BETWEEN, "cluster", "tcp", ("latency", "bandwidth"), _LARGE, _ANY,
            "each frame has a header and a checksum of its own, where TCP hands the kernel 64 KB at a time"))
_AHEAD = (
    _Reason(BETWEEN, "cluster/packet", "tcp", ("latency",), 0, _LARGE - 1,
            "a raw frame passes no TCP/IP, and its arrival is seen in memory"),
    _Reason(BETWEEN, "cluster", "tcp", ("rate",), 0, _LARGE - 1, "many small messages share a frame"),
    _Reason(INSIDE, "cluster", "tcp", ("latency", "rate", "bandwidth"), 0, _ANY,
            "shared memory needs no system call, which TCP needs inside a node, too"))


def _reason(known, found):
    """The reason why this one won or lost, as far as known; the first that applies."""
    ours, peer = transport_text(found.ours["transport"]), transport_text(found.peer["transport"])
    measure, size = found.ours["measure"], found.ours["bytes"]
    return next((reason.text for reason in known
                 if reason.place == found.ours["place"] and reason.ours in (ours, ours.partition("/")[0]) and reason.peer == peer
                 and measure in reason.measures and reason.least <= size <= reason.most), "")


def _lines(head, entries, known):
    """A line for all figures with the same reason."""
    by_reason = {}
    for row, found in entries:
        by_reason.setdefault(_reason(known, found), []).append(f"{row.name} ({ratio_text(found)})")
    return [f"    {head}: {', '.join(texts)}" + (f": {reason}" if reason else "") for reason, texts in by_reason.items()]


def _of_transport(name, block):
    """The verdict on one of ours in one place."""
    compared = [(row, row.comparison(row.cells[name])) for row in block if name in row.cells]
    compared = [(row, found) for row, found in compared if found]
    ahead = [(row, found) for row, found in compared if found.times > 1 + found.spread()]
    behind = [(row, found) for row, found in compared if found.times * (1 + found.spread()) < 1]
    even = [entry for entry in compared if entry not in ahead and entry not in behind]
    if not compared:
        return [f"  {transport_text(name)}: no other transport was measured"]
    return [f"  {transport_text(name)} wins {len(ahead)} of {len(compared)} lines, loses {len(behind)}",
            *_lines("won", ahead, _AHEAD), *_lines("lost", behind, _BEHIND), *_lines("within the spread", even, ())]


def _of_machine(report):
    nearest = report["cache_line_ns"]["nearest"]
    if nearest <= _SHARED_CACHE_NS:
        return []
    return [f"A cache line takes {nearest:.0f} ns between these processors, as where they share no cache (20 to 40 where they do): all "
            "transports are slower for it, and cluster more than its peers. The figures of the README are of processors that share one."]


def render(report, level="mpi"):
    lines = ["In words (won and lost: by more than the spread of the two)"]
    for place, title in _PLACES.items():
        block = rows(report["results"], place, level)
        names = sorted({name for row in block for name in row.cells if is_ours(name)})
        lines += [title, *(line for name in names for line in _of_transport(name, block))] if names else []
    return "\n".join(lines + _of_machine(report))
