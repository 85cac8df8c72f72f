"""The lines of the tables: which figures are compared, and how sizes and values are written.

A row holds the results of one measurement over each transport."""
from dataclasses import dataclass

from .samples import compare, is_ours, spread_of
from .transports import INSIDE

LEVELS = ("fabric", "mpi", "crowd", "bare")
_OF_LEVEL = {"mpi": "MPI ", "crowd": "more ranks than processors, "}


def size_text(size):
    for unit, shift in (("MB", 20), ("KB", 10)):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def value_text(value, unit):
    if unit == "us":
        return f"{value:,.2f} us"
    if unit == "%":
        return f"{value:.0f} %"
    if unit == "s/GB":
        return f"{value:.3f} s/GB"
    scale, name = (1e9, "GB/s") if unit == "B/s" else (1e6, "M/s")
    return f"{value / scale:,.2f} {name}"


def transport_text(name):
    return name.removeprefix("mpi:")


def cell_text(result):
    if result is None:
        return "-"
    return value_text(result["median"], result["unit"]) + (" far" if result["phase"] == "far" else "")


def ratio_text(found):
    """A comparison: `x 1.80 shm`, `x 1.80~ shm` where phases differ, `x 1.80 shm far` where the far runs of both are compared."""
    far = found.ours["phase"] == found.peer["phase"] == "far"
    return f"x {found.times:.2f}{found.mark} {transport_text(found.peer['transport'])}" + (" far" if far else "")


def _memory(result):
    """Names the kind of remote memory, which matters inside a node."""
    if result["place"] != INSIDE or result["measure"].partition("_")[0] not in ("put", "get"):
        return ""
    return ", shared mapping" if "_shared" in result["measure"] else ", private memory"


def _name(result):
    name = result["measure"].replace("_shared", "").replace("_", " ")
    name += f" {size_text(result['bytes'])}" if result["bytes"] else ""
    if result["measure"] == "pairs":
        name += f", {result['window']} pairs"
    elif result["window"] > 1:
        name += f" x {result['window']}"
    return name + _memory(result) + (", waiting asleep" if result["wait"] == "block" else "")


@dataclass
class Row:
    place: str
    level: str
    name: str
    cells: dict  # name of the transport -> result; ours first

    def ours(self):
        return [result for name, result in self.cells.items() if is_ours(name) and result["median"]]

    def comparison(self, ours):
        """Compares this result of ours with its strongest peer, in whatever phase; None without a peer."""
        peers = [result for name, result in self.cells.items() if not is_ours(name) and result["median"]]
        return min((compare(ours, peer) for peer in peers), key=lambda each: each.times) if peers and ours["median"] else None

    def comparisons(self):
        """A comparison for each of ours that has a peer."""
        return [found for found in map(self.comparison, self.ours()) if found]

    def spread(self):
        """The widest spread of any cell, as a share of its median; None without figures."""
        return max((spread_of(result) for result in self.cells.values() if result["median"]), default=None)

    def winner(self):
        """Compares the best of ours with its best peer if each of ours loses to a peer by more than the spread; else
        None."""
        found = self.comparisons()
        if not found or any(1 <= each.times * (1 + self.spread()) for each in found):
            return None
        return max(found, key=lambda each: each.times)

    def warning(self):
        """One line if a peer wins; empty otherwise."""
        found = self.winner()
        if not found:
            return ""
        ours, peer = found.ours, found.peer
        return (f"{transport_text(peer['transport'])} is ahead: {self.place}, {_OF_LEVEL.get(self.level, '')}{self.name}: "
                f"{cell_text(peer)}, {transport_text(ours['transport'])} {cell_text(ours)}")


def rows(results, place, level):
    """The rows of a block in the order of the results."""
    mine = [result for result in results if (result["place"], result["level"]) == (place, level)]
    found = {}
    for result in sorted(mine, key=lambda result: (not is_ours(result["transport"]), result["transport"])):
        found.setdefault(_name(result), {})[result["transport"]] = result
    return [Row(place, level, name, found[name]) for name in dict.fromkeys(map(_name, mine))]


def transports_of(block):
    """The names of the columns of some rows, ours first."""
    names = {name for row in block for name in row.cells}
    return sorted(names, key=lambda name: (not is_ours(name), name))
