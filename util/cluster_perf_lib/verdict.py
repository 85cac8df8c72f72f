"""The sentences below the table of the demo, one for each of ours in each place: which lines it wins, which a peer wins, and why.

One wins a line if it is ahead of the other by more than the spread of both."""
import textwrap
from dataclasses import dataclass

from .machine import CLASS_FAR, class_of
from .rows import ratio_text, rows, transport_text
from .samples import is_ours
from .transports import BETWEEN, INSIDE

_PLACES = {INSIDE: "Inside a node", BETWEEN: "Between nodes"}
_WIDTH = 110
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
    _Reason(BETWEEN, "cluster/packet", "tcp", ("latency",), 0, _LARGE,
            "a raw frame passes no TCP/IP, and its arrival is seen in memory"),
    _Reason(BETWEEN, "cluster", "tcp", ("rate",), 0, _LARGE - 1, "many small messages share a frame"),
    _Reason(INSIDE, "cluster", "vader", ("latency", "bandwidth"), _LARGE, _ANY, "both processes share the work of a large copy"),
    _Reason(INSIDE, "cluster", "tcp", ("latency", "rate", "bandwidth"), 0, _ANY,
            "shared memory needs no system call, which TCP needs inside a node, too"))


def _reason(known, found):
    """The reason why this one won or lost, as far as known; the first that applies."""
    ours, peer = transport_text(found.ours["transport"]), transport_text(found.peer["transport"])
    measure, size = found.ours["measure"], found.ours["bytes"]
    return next((reason.text for reason in known
                 if reason.place == found.ours["place"] and reason.ours in (ours, ours.partition("/")[0]) and reason.peer == peer
                 and measure in reason.measures and reason.least <= size <= reason.most), "")


def _listed(texts):
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _named(entries, known=()):
    """All lines; those with the same reason stand together before it, those without a known one first."""
    by_reason = {"": []}
    for row, found in entries:
        by_reason.setdefault(_reason(known, found), []).append(f"{row.name} ({ratio_text(found)})")
    return "; ".join(_listed(texts) + (f", because {reason}" if reason else "") for reason, texts in by_reason.items() if texts)


def _of_transport(place, name, block):
    """The sentence about one of ours in one place."""
    subject = f"{_PLACES[place]}, {transport_text(name)}"
    compared = [(row, row.comparison(row.cells[name])) for row in block if name in row.cells]
    compared = [(row, found) for row, found in compared if found]
    if not compared:
        return f"{subject} stands alone: no other transport was measured."
    ahead = [(row, found) for row, found in compared if found.times > 1 + found.spread()]
    behind = [(row, found) for row, found in compared if found.times * (1 + found.spread()) < 1]
    even = [entry for entry in compared if entry not in ahead and entry not in behind]
    parts = [f"{verb} {_named(entries, known)}" for verb, entries, known in
             (("wins", ahead, _AHEAD), ("loses", behind, _BEHIND), ("neither wins nor loses", even, ())) if entries]
    return f"{subject} {'; it '.join(parts)}."


def _of_machine(report):
    text = f"This is a machine {class_of(report['cache_line_ns']['nearest'])}."
    if CLASS_FAR in text:
        text += " All transports are slower for it inside a node, and cluster more than its peers."
    return text


def render(report, level="mpi"):
    sentences = []
    for place in _PLACES:
        block = rows(report["results"], place, level)
        names = sorted({name for row in block for name in row.cells if is_ours(name)})
        sentences += [_of_transport(place, name, block) for name in names]
    sentences = [text.replace("(x ", "(x\N{NO-BREAK SPACE}") for text in [*sentences, _of_machine(report)]]
    return "\n".join(["In words (won and lost: by more than the spread of the two)",
                      *(textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
                        for text in sentences)]).replace("\N{NO-BREAK SPACE}", " ")
