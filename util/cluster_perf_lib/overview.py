"""Draws the picture of the README from the tables of docs/perf/newest.md. Needs matplotlib.

    python3 util/cluster_perf_lib/overview.py prov/cluster/docs/perf/newest.md docs/pictures/figures.svg

Each line named below gets a bar: its speedup over the best peer. Bars right of that peer's line are better, bars left
of it are worse. The figures stand beside the bar as text; a test compares them with the tables.
"""
import re
import sys
from dataclasses import dataclass

_BETWEEN = ("latency 64 B", "latency 4 KB", "latency 64 KB", "rate 8 B x 64", "bandwidth 64 KB x 16", "bandwidth 1 MB x 16",
            "put latency 8 B", "put 1 MB x 16", "bandwidth 1 MB x 16, waiting asleep", "MPI, latency 64 B", "MPI, bandwidth 1 MB x 16")
# Which lines of which column of which table. Users without CAP_NET_RAW have UDP.
SHOWN = {
    "inside a node": ("inside a node", "cluster",
                      ("latency 8 B", "latency 4 KB", "rate 8 B x 64", "bandwidth 1 MB x 16", "put latency 8 B, private memory",
                       "put 1 MB x 16, private memory", "put latency 8 B, shared mapping", "put 1 MB x 16, shared mapping",
                       "MPI, latency 8 B", "MPI, rate 8 B x 64")),
    "between nodes, raw frames": ("between nodes", "cluster/packet", _BETWEEN),
    "between nodes, UDP": ("between nodes", "cluster/udp", _BETWEEN)}
_BETTER, _WORSE, _EDGE = "#1e8449", "#b9770e", "#555555"
_TICKS = {0.25: "¼", 0.5: "½", 1: "best peer", 2: "2 x", 4: "4 x", 8: "8 x", 16: "16 x"}
_COLUMNS = {"cluster": 1.27, "best peer": 1.74, "times": 1.93}  # where each column ends, in widths of the axes


@dataclass
class Line:
    group: str
    name: str
    ours: str
    peer: str
    times: str  # the speedup over the best peer; `~` behind it where the phases differ

    def ratio(self):
        return float(self.times.rstrip("~"))


def _number(cell):
    return float(re.search(r"[\d,.]+(?= )", cell).group().replace(",", ""))


def _times(row, column):
    """The table has the speedup of the best of ours; that of another follows from its cell and the peer's, in the same unit."""
    less_is_better = " us" in row["best peer"] or "s/GB" in row["best peer"]
    ours = [name for name in row if name.startswith("cluster")]
    best = (min if less_is_better else max)(ours, key=lambda name: _number(row[name]))
    said, mine, other = row["times as good"], _number(row[column]), _number(row["best peer"])
    return said if column == best else f"{other / mine if less_is_better else mine / other:.2f}" + "~" * said.endswith("~")


def lines(text):
    """Finds the lines to show in the tables of the document; raises KeyError if one is missing."""
    found, head = {}, []
    places = {place for place, _, _ in SHOWN.values()}
    for row in re.findall(r"^\| (.*) \|$", text, re.MULTILINE):
        cells = row.split(" | ")
        if "best peer" in cells:
            head = cells
        elif head and head[0] in places:
            found[head[0], cells[0]] = dict(zip(head, cells))
    shown = []
    for group, (place, column, names) in SHOWN.items():
        for name in names:
            row = found[place, name]
            shown.append(Line(group, name, row[column], row["best peer"], _times(row, column)))
    return shown


def draw(shown, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "cluster-perf", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    from matplotlib import pyplot
    height = 0.215 * (len(shown) + 2 * len(SHOWN)) + 0.3
    figure, axes = pyplot.subplots(figsize=(8.6, height))
    figure.subplots_adjust(left=0.29, right=0.65, top=0.99, bottom=0.3 / height)
    beside = {"transform": axes.get_yaxis_transform(), "va": "center", "ha": "right"}
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(_TICKS), max(_TICKS))
    at, names = 0, {}
    for group in SHOWN:
        axes.text(-0.02, at, group, fontweight="bold", **beside)
        for head, column in _COLUMNS.items():
            axes.text(column, at, head, color=_EDGE, **beside)
        for line in (line for line in shown if line.group == group):
            at -= 1
            times = line.ratio()
            axes.barh(at, times - 1, left=1, height=0.66, color=_BETTER if times >= 1 else _WORSE)
            for cell, column in zip((line.ours, line.peer, line.times), _COLUMNS.values()):
                axes.text(column, at, cell, **beside)
            names[at] = line.name
        at -= 1.6
    axes.set_ylim(at + 1, 0.7)
    axes.set_yticks(list(names), names.values())
    axes.tick_params(axis="y", length=0)
    axes.axvline(1, color=_EDGE, linewidth=1)
    axes.set_xticks(list(_TICKS), _TICKS.values())
    axes.minorticks_off()
    axes.grid(True, axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as tables:
        draw(lines(tables.read()), sys.argv[2])
