"""The page about the papers that the provider stands on: their tables and figures, and ours in the same form, from the figures of one run.

What a paper says itself is here only with its source; what is not at hand is named so."""
import textwrap
from dataclasses import dataclass

from . import limits
from .machine import class_of, in_words
from .rows import size_text, value_text
from .samples import times_as_good
from .transports import BETWEEN, INSIDE

_SMALL, _LARGE = 64, 1 << 20
_SIZES = (8, _SMALL, 1 << 10, 4 << 10, 16 << 10, 64 << 10, _LARGE)
_WIDTH = 110
_NOT_AT_HAND = "The figures of the paper itself are not at hand."


@dataclass(frozen=True)
class Column:
    head: str
    place: str
    level: str
    transport: str
    wait: str = "spin"


class Figures:
    """The results of a run by what they are of."""

    def __init__(self, report):
        self.all = report["results"]
        self._found = {(result["place"], result["level"], result["transport"], result["wait"], result["measure"], result["bytes"]): result
                       for result in self.all}

    def get(self, column, measure, size):
        return self._found.get((column.place, column.level, column.transport, column.wait, measure, size))

    def series(self, column, measure):
        """By size."""
        mine = [result for key, result in self._found.items() if key[:5] == (column.place, column.level, column.transport, column.wait, measure)]
        return sorted(mine, key=lambda result: result["bytes"])

    def half_size(self, column):
        """The smallest size with at least half of the highest bandwidth, and all sizes above it, too."""
        series = self.series(column, "bandwidth")
        most = max(result["median"] for result in series)
        for at, result in enumerate(series):
            if all(later["median"] >= most / 2 for later in series[at:] if later["bytes"] <= 4 << 20):
                return result["bytes"]
        raise ValueError("the highest is more than half")


def _cell(result):
    return "-" if result is None else value_text(result["median"], result["unit"])


def _table(head, rows):
    return ["", "| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1), *("| " + " | ".join(row) + " |" for row in rows)]


def _by_size(figures, columns, measure, title):
    return _table([title, *(column.head for column in columns)],
                  [[size_text(size), *(_cell(figures.get(column, measure, size)) for column in columns)] for size in _SIZES
                   if measure == "latency" or size >= _SMALL])


def _summary(figures, columns):
    """A line for each: shortest time, highest bandwidth, and from which size half of that."""
    rows = []
    for column in columns:
        best = max(figures.series(column, "bandwidth"), key=lambda result: result["median"])
        rows.append([column.head, _cell(figures.get(column, "latency", 8)), f"{_cell(best)} at {size_text(best['bytes'])}",
                     size_text(figures.half_size(column))])
    return _table(["", "8 B", "highest bandwidth", "half of it from"], rows)


_OURS = Column("cluster, raw frames", BETWEEN, "fabric", "cluster/packet")
_OURS_MPI = Column("MPI, raw frames", BETWEEN, "mpi", "mpi:cluster/packet")
_UDP = Column("cluster, UDP", BETWEEN, "fabric", "cluster/udp")
_UDP_MPI = Column("MPI, UDP", BETWEEN, "mpi", "mpi:cluster/udp")
_TCP = Column("tcp", BETWEEN, "fabric", "tcp")
_TCP_MPI = Column("MPI, tcp", BETWEEN, "mpi", "mpi:tcp")
_INSIDE = Column("cluster, inside a node", INSIDE, "fabric", "cluster")
_INSIDE_MPI = Column("MPI, inside a node", INSIDE, "mpi", "mpi:cluster")


def _clic(figures):
    columns = (_OURS, _OURS_MPI, _TCP, _TCP_MPI)
    gain = times_as_good(figures.get(_OURS_MPI, "latency", _SMALL), figures.get(_TCP_MPI, "latency", _SMALL))
    large = times_as_good(figures.get(_OURS_MPI, "bandwidth", _LARGE), figures.get(_TCP_MPI, "bandwidth", _LARGE))
    return [*_by_size(figures, columns, "latency", "time"), *_by_size(figures, columns, "bandwidth", "bandwidth"), "",
            f"CLIC goes around TCP/IP, and so do raw frames: MPI over them is {gain:.2f} times as good as over TCP for {size_text(_SMALL)}, and "
            f"{large:.2f} times for streams of {size_text(_LARGE)}."]


def _bcl(figures):
    share = figures.get(_INSIDE, "latency", 8)["median"] / figures.get(_OURS, "latency", 8)["median"]
    return [*_summary(figures, (_INSIDE, _OURS)), "",
            f"BCL-3 has a way of its own inside a node, and so has the provider: a message there takes {100 * share:.0f} % of the time of one "
            "between nodes, because it needs no call of the kernel."]


def _bip(figures):
    return [*_summary(figures, (_OURS, _OURS_MPI, _INSIDE, _INSIDE_MPI)), "",
            f"The suite has the same layers: BIP between nodes, BIP-SMP inside them, MPI-BIP above. Between nodes, half of the highest bandwidth "
            f"needs messages of {size_text(figures.half_size(_OURS))}: smaller ones share frames, but each has a cost of its own."]


def _mpc(figures):
    asleep = Column("calls and interrupts (UDP, waiting asleep)", BETWEEN, "fabric", "cluster/udp", "block")
    polling = Column("user level and polling (raw frames)", BETWEEN, "fabric", "cluster/packet")
    rows = [[column.head, _cell(figures.get(column, "latency", 8)), _cell(figures.get(column, "bandwidth", _LARGE))] for column in (asleep, polling)]
    rows += [[f"{column.head}, polling", _cell(figures.get(column, "latency", 8)), _cell(figures.get(column, "bandwidth", _LARGE))]
             for column in (_UDP_MPI, _OURS_MPI)]
    gain = times_as_good(figures.get(polling, "latency", 8), figures.get(asleep, "latency", 8))
    return [*_table(["", "8 B", "1 MB"], rows), "",
            f"MPC2 works at user level and polls, where MPC1 needs calls and interrupts. Here polling over raw frames is {gain:.2f} times as fast as "
            "UDP with a wait that sleeps. Most of the difference is the time in which the kernel wakes the sleeper; it sends in both cases."]


def _deck(figures):
    columns = (_OURS, _UDP, _TCP, _OURS_MPI, _TCP_MPI)
    sizes = (64 << 10, _LARGE)

    def share(column, size):
        result = figures.get(column, "bandwidth", size)
        found = limits.of(result, figures.all) if result else None
        return f"{100 * times_as_good(result, found):.0f} %" if found else "-"

    rows = [[column.head, _cell(figures.get(column, "latency", 64)), *(share(column, size) for size in sizes)] for column in columns]
    return [*_table(["", "64 B", *(f"share of a bare stream, {size_text(size)}" for size in sizes)], rows), "",
            "DECK states its bandwidth as a share of what the card can do. Here the maximum is a stream of the kernel without any protocol above, on "
            "the same machine: the rest goes into headers, checksums and acknowledgements."]


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    theirs: str
    ours: object  # a function of the figures, to lines of Markdown
    missing: str = ""  # tables of the paper for which nothing is measured yet


PAPERS = (
    Paper("CLIC (Granada)", "Time and bandwidth by size, with and without MPI, beside TCP", _NOT_AT_HAND, _clic,
          "the stages of a frame; PVM; the matrix product on 4 to 9 nodes"),
    Paper("BCL-3 (DAWNING-3000)", "Time and bandwidth inside a node and between nodes", _NOT_AT_HAND, _bcl,
          "TCP/IP and PVM above; 70 nodes with 4 processes each"),
    Paper("BIP-SMP (Lyon)", "The lowest layer and MPI, inside a node and between nodes",
          "The manual of BIP (1998) says, for Myrinet with LANai 4.1: less than 5 us, more than 125 MB/s. The figures of the paper about BIP-SMP are "
          "not at hand.", _bip),
    Paper("MPI-MPC over PCI-DDC (Paris 6)", "Calls and interrupts beside user level and polling",
          "The abstract (IPDPS 2001, hal-01571021) says: 5 to 40 us and 490 Mbit/s for the two lower layers, 26 us and 450 Mbit/s (56 MB/s) for MPI, "
          "on links of 1 Gbit/s.", _mpc, "the Gauss elimination of CADNA by order; the size of control messages"),
    Paper("DECK-SCI (Porto Alegre)", "Time, and share of the maximum, beside peers", _NOT_AT_HAND, _deck, "the same over two joined clusters"))


def render(report):
    """The page. Without all measures that a table needs, there is none: `ValueError`."""
    figures = Figures(report)
    lines = ["# The papers, and what is measured here", "",
             "The provider stands on five papers about messages in clusters. This page has tables in the form of theirs. It is made by "
             "`util/cluster-perf --papers`, which needs a full run.", "",
             f"Ours: measured on {in_words(report['machine'])}; a machine {class_of(report['cache_line_ns']['nearest'])}. The nodes are virtual, so "
             "no wire and no card take part: absolute figures of 1998 to 2003 and these do not compare, but their relations do."]
    for paper in PAPERS:
        try:
            ours = paper.ours(figures)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"the figures for {paper.name} are incomplete: a full run is needed") from error
        lines += ["", f"## {paper.name}", "", f"{paper.title}. {paper.theirs}", *ours]
        lines += ["", f"Not measured yet: {paper.missing}."] if paper.missing else []
    return "\n".join(line if line.startswith("|") else textwrap.fill(line, _WIDTH, break_on_hyphens=False, break_long_words=False) for line in lines)
