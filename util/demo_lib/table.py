"""The table at the end of the demo."""
import math
from statistics import median

from jobs import MEASURES

_TITLES = {
    "cluster": "cluster", "packet": "cluster, raw frames", "udp": "cluster, UDP sockets",
    "tcp": "Open MPI, kernel TCP", "vader": "Open MPI, shared memory"}
_PHASE_FACTOR = 2.0  # runs whose cache line took longer than this times the best are another phase of the machine


class Samples:
    """All runs of all cases, each with the state the processors were in."""

    def __init__(self):
        self.runs = []  # (place, transport, phase in ns, figures)

    def add(self, place, transport, phase, figures):
        self.runs.append((place, transport, phase, figures))

    def near_limit(self):
        return _PHASE_FACTOR * min((phase for _, _, phase, _ in self.runs), default=math.inf)

    def is_covered(self, place, transport):
        """True when at least one run of this case fell into the good phase."""
        limit = self.near_limit()
        return any(run[:2] == (place, transport) and run[2] <= limit for run in self.runs)

    def medians(self, place, transport):
        runs = [run for run in self.runs if run[:2] == (place, transport)]
        near = [run for run in runs if run[2] <= self.near_limit()]
        return {measure: median(run[3][measure] for run in near or runs) for measure in MEASURES} if runs else None

    def phase_note(self):
        phases = [run[2] for run in self.runs]
        limit = self.near_limit()
        if math.isinf(limit):
            return "How near the processors are to each other could not be found out: medians over all runs."
        near = [phase for phase in phases if phase <= limit]
        return (f"A cache line took {min(phases):.0f} to {max(phases):.0f} ns between the processors; "
                f"medians over the {len(near)} of {len(phases)} runs with at most {limit:.0f} ns.")

    def as_json(self, cases):
        rows = []
        for place, transport in cases:
            values = self.medians(place, transport)
            rows.append({"place": place, "transport": transport,
                         **{f"{name}_{size}": value for (name, size), value in (values or {}).items()}})
        return {"rows": rows, "cache_line_ns": [run[2] for run in self.runs if not math.isinf(run[2])]}


def _number(measure, value):
    return f"{value:,.2f}" if measure == "latency_us" else f"{value:,.0f}"


def _row(title, cells):
    return f"  {title:<34}" + "".join(f"{cell:>11}" for cell in cells)


def _ratio(ours, theirs):
    """How many times better; above 1 is better for every measure."""
    cells = []
    for measure in MEASURES:
        better = theirs[measure] / ours[measure] if measure[0] == "latency_us" else ours[measure] / theirs[measure]
        cells.append(f"x {better:.2f}")
    return cells


def render(samples, cases):
    """The text of the table for the measured cases, in their order."""
    lines = [_row("", ["8 B", "1 KB", "64 KB", "1 MB", "8 B"]),
             _row("", ["us one-way", "us one-way", "us one-way", "MB/s", "kmsg/s"])]
    for place in dict.fromkeys(place for place, _ in cases):
        lines.append(place)
        values = {t: samples.medians(p, t) for p, t in cases if p == place}
        for transport, figures in values.items():
            lines.append(_row(_TITLES[transport], [_number(m[0], figures[m]) for m in MEASURES]))
        ours = [t for t in values if t in ("cluster", "packet", "udp")]
        for transport in ours:
            for other in ("tcp", "vader"):
                if other in values:
                    title = f"{_TITLES[transport]} : {_TITLES[other].partition(', ')[2]}"
                    lines.append(_row(title, _ratio(values[transport], values[other])))
    return "\n".join(lines)
