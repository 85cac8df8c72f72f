"""The figures of one run as the page about the papers asks for them, and how its cells and tables are written."""
from dataclasses import dataclass

from .rows import size_text, value_text
from .samples import times_as_good
from .transports import BETWEEN, INSIDE

NOT_AT_HAND = "not at hand"
SIZES = {"latency": (8, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20),
         "bandwidth": (64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)}


@dataclass(frozen=True)
class Column:
    head: str
    place: str
    level: str
    transport: str
    wait: str = "spin"


OURS = Column("cluster, raw frames", BETWEEN, "fabric", "cluster/packet")
OURS_MPI = Column("MPI, raw frames", BETWEEN, "mpi", "mpi:cluster/packet")
UDP = Column("cluster, UDP", BETWEEN, "fabric", "cluster/udp")
UDP_MPI = Column("MPI, UDP", BETWEEN, "mpi", "mpi:cluster/udp")
UDP_MPI_ASLEEP = Column("MPI, UDP, waiting asleep", BETWEEN, "mpi", "mpi:cluster/udp", "block")
UDP_ASLEEP = Column("calls and interrupts (UDP, waiting asleep)", BETWEEN, "fabric", "cluster/udp", "block")
TCP = Column("tcp", BETWEEN, "fabric", "tcp")
TCP_MPI = Column("MPI, tcp", BETWEEN, "mpi", "mpi:tcp")
OVER_IP = Column("TCP/IP over cluster-ip", BETWEEN, "fabric", "tcp/cluster-ip")
OVER_IP_ASLEEP = Column("TCP/IP over cluster-ip, waiting asleep", BETWEEN, "fabric", "tcp/cluster-ip", "block")
ON_NODE = Column("cluster, inside a node", INSIDE, "fabric", "cluster")
ON_NODE_MPI = Column("MPI, inside a node", INSIDE, "mpi", "mpi:cluster")
COLUMNS = (OURS, OURS_MPI, UDP, UDP_MPI, UDP_MPI_ASLEEP, UDP_ASLEEP, TCP, TCP_MPI, OVER_IP, OVER_IP_ASLEEP, ON_NODE,
           ON_NODE_MPI)
_ASKED = {(column.place, column.level, column.transport, column.wait) for column in COLUMNS}
_KEPT = ("place", "level", "transport", "wait", "measure", "bytes", "window", "unit", "phase", "median")


def is_asked(place, transport, wait):
    """Whether the page shows this transport in this place, or needs it as a limit."""
    return transport.kind == "bare" or (place, transport.level, transport.name, wait) in _ASKED


def kept(report):
    """The part of a report that the page is made of."""
    results = [{name: result[name] for name in _KEPT} for result in report["results"]
               if (result["measure"] in ("latency", "bandwidth") and tuple(result[name] for name in ("place", "level", "transport", "wait")) in _ASKED)
               or result["measure"] in ("stream", "copy")]
    return {"machine": report["machine"], "settings": report["settings"], "cache_line_ns": report["cache_line_ns"], "results": results,
            "papers": report.get("papers", {})}


class NotMeasured(Exception):
    """A table has no figures; the text says why."""


class Figures:
    """The results of a run by what they are of."""

    def __init__(self, report):
        self.all = report["results"]
        self.processors = report.get("machine", {}).get("processors", 0)  # 0: not known
        self._papers = report["papers"]
        self._found = {(result["place"], result["level"], result["transport"], result["wait"], result["measure"], result["bytes"]): result
                       for result in self.all}

    def get(self, column, measure, size):
        return self._found.get((column.place, column.level, column.transport, column.wait, measure, size))

    def series(self, column, measure):
        """(bytes, median) by size."""
        return sorted((key[5], result["median"]) for key, result in self._found.items()
                      if key[:5] == (column.place, column.level, column.transport, column.wait, measure))

    def shared_by(self, processes):
        """How that many processes, each of which could use a processor, share those of the machine; in words."""
        known = f"{self.processors} processor{'s' if self.processors > 1 else ''}" if self.processors else "the processors of one machine"
        return f"share {known}" if processes > self.processors else f"have {known}"

    def share(self, column, size):
        """The share of the fastest bare stream or copy, of any size, that the bandwidth is, in words."""
        result = self.get(column, "bandwidth", size)
        bare = [each for each in self.all if each["place"] == column.place and each["measure"] in ("stream", "copy")]
        if result is None or not bare:
            return "-"
        return f"{100 * times_as_good(result, max(bare, key=lambda each: each['median'])):.0f} %"

    def highest_share(self, column):
        """The same of the size that has the highest bandwidth."""
        return self.share(column, max(self.series(column, "bandwidth"), key=lambda pair: pair[1])[0])

    def rows(self, measure, **fields):
        """The rows of a measure of whole programs that have these values."""
        found = self._papers.get(measure, {"rows": [], "reason": "this run did not include it"})
        rows = [row for row in found["rows"] if all(row[name] == value for name, value in fields.items() if name in row)]
        if not rows:
            raise NotMeasured(found["reason"] or "there are no figures of it")
        return rows

    def has(self, measure):
        return bool(self._papers.get(measure, {}).get("rows"))

    def pvm(self, network):
        """bytes -> microseconds one way, on the direct route."""
        return {row["bytes"]: row["value"] for row in self.rows("pvm", what="pingpong") if (row["network"], row["route"]) == (network, "tcp")}


def half_size(series):
    """The smallest size from which on, up to the highest bandwidth, all have at least half of that."""
    top, most = max(series, key=lambda pair: pair[1])
    below = [size for size, median in series if size < top and median < most / 2]
    return min(size for size, _ in series if not below or size > max(below))


def cell(result):
    return "-" if result is None else value_text(result["median"], result["unit"])


def table(head, rows, theirs=None):
    """The last column says what the paper has; `theirs` is that by the first cell of a row."""
    lines = [[*head, "in the paper"], *([*row, (theirs or {}).get(row[0], NOT_AT_HAND)] for row in rows)]
    lines = ["| " + " | ".join(line) + " |" for line in lines]
    return ["", lines[0], "|---|" + "---:|" * len(head), *lines[1:], ""]


def _percent(ratio):
    return round(100 * abs(ratio - 1))


def more_or_less(ratio, what=" time"):
    """A ratio as a difference, in words that are right on either side of 1, and end with what comes before the other thing."""
    return f"as much{what} as" if _percent(ratio) == 0 else f"{_percent(ratio)} % {'more' if ratio > 1 else 'less'}{what} than"


def span_of(ratios):
    """The same for the smallest and the largest of several."""
    low, high = min(ratios), max(ratios)
    if _percent(low) == _percent(high) and (low > 1) == (high > 1):
        return more_or_less(low)
    if low <= 1 <= high:
        return f"{_percent(low)} % less to {_percent(high)} % more time than"
    nearer, farther = sorted((_percent(low), _percent(high)))
    return f"{nearer} to {farther} % {'more' if low > 1 else 'less'} time than"


def summary_line(head, shortest, series):
    """Shortest time, highest bandwidth, and from which size half of that."""
    size, most = max(series, key=lambda pair: pair[1])
    return [head, shortest, f"{value_text(most, 'B/s')} at {size_text(size)}", size_text(half_size(series)) if len(series) > 1 else "-"]


def summary(figures, columns, more=(), theirs=None):
    lines = [summary_line(column.head, cell(figures.get(column, "latency", 8)), figures.series(column, "bandwidth")) for column in columns]
    return table(["", "8 B", "highest bandwidth", "half of it from"], [*lines, *more], theirs)


def summary_with_share(figures, columns, size, theirs=None):
    """The share is that of Figures.share()."""
    lines = [[*summary_line(column.head, cell(figures.get(column, "latency", 8)), figures.series(column, "bandwidth")), figures.share(column, size)]
             for column in columns]
    return table(["", "8 B", "highest bandwidth", "half of it from", f"share of the maximum, {size_text(size)}"], lines, theirs)
