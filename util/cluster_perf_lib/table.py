"""The text: one table per place and level, a line per measure, a column per transport, ratios beside peers and limits."""
from . import limits
from .rows import LEVELS, cell_text, ratio_text, rows, size_text, transport_text, transports_of
from .samples import compare, is_ours, spread_of
from .transports import AGENTS, CROWD_RANKS, KEYED

_TITLES = {("inside", "fabric"): "Inside a node, libfabric and UCX", ("inside", "mpi"): "Inside a node, MPI",
           ("inside", "crowd"): "More ranks than processors: {ranks} inside a node, MPI",
           ("inside", "bare"): "Inside a node, bare limits", ("between", "fabric"): "Between nodes, libfabric and UCX",
           ("between", "mpi"): "Between nodes, MPI",
           ("between", "crowd"): "More ranks than processors: {half} on each of two nodes, MPI",
           ("between", "bare"): "Between nodes, bare limits"}
_COMPARED = {AGENTS: "While agents run, beside without them (spread without)",
             KEYED[0]: "With a key, frames authenticated, beside without a key (spread without)",
             KEYED[1]: "With a key, frames encrypted, beside without a key (spread without)"}
_WIDTH, _BESIDE, _BARE = 16, 24, 22


def _spread_cell(row):
    spread = row.spread()
    return "-" if spread is None else f"{100 * spread:.0f} %"


def _ratio_cell(row, name):
    """`x 1.8 shm`: one of ours compared with its best peer."""
    found = row.comparison(row.cells[name]) if name in row.cells else None
    return ratio_text(found) if found else "-"


def _bare_cells(block, results):
    """For each row the ratio to the limit of the transport of ours that comes nearest to it; empty if no row has a
    limit."""
    pairs = [limits.nearest(row, results) for row in block]
    return [limits.text(*pair) if pair else "-" for pair in pairs] if any(pairs) else []


def _block(place, level, results, crowd):
    block = rows(results, place, level)
    if not block:
        return []
    transports = transports_of(block)
    width = max([len(row.name) for row in block] + [20]) + 2
    column = max([_WIDTH] + [len(transport_text(name)) + 2 for name in transports])
    ours = [name for name in transports if is_ours(name)]
    compared = ours if len(transports) > len(ours) else []
    bare = _bare_cells(block, results)
    lines = ["", _TITLES[place, level].format(ranks=crowd, half=crowd // 2),
             " " * width + "".join(f"{transport_text(name):>{column}}" for name in transports) + f"{'spread':>9}"
             + "".join(f"{transport_text(name) + ' : best':>{_BESIDE}}" for name in compared)
             + (f"{'bare':>{_BARE}}" if bare else "")]
    for number, row in enumerate(block):
        cells = [f"{cell_text(row.cells.get(name)):>{column}}" for name in transports]
        cells.append(f"{_spread_cell(row):>9}")
        cells += [f"{_ratio_cell(row, name):>{_BESIDE}}" for name in compared]
        cells += [f"{bare[number]:>{_BARE}}"] if bare else []
        lines.append(f"{row.name:<{width}}" + "".join(cells))
    return lines


def warnings(results):
    """A line per row that a peer wins."""
    found = [row.warning() for place in ("inside", "between") for level in LEVELS for row in rows(results, place, level)]
    return [line for line in found if line]


def _cpu(results):
    """Processor time of both sides, for rows in which they slept while waiting: a side that spins or pauses uses all
    its time."""
    mine = [result for result in results
            if result["wait"] == "block" and result["measure"] != "wake" and "cpu_us_per_message" in result]
    lines = ["", "Processor time of both sides together, waiting asleep"] if mine else []
    for result in mine:
        per = (f"{result['cpu_seconds_per_gb']:.3f} s per GB" if "cpu_seconds_per_gb" in result
               else f"{result['cpu_us_per_message']:.3f} us per message")
        lines.append(f"  {result['place']:<8} {result['transport']:<18} {result['measure']:<10} "
                     f"{size_text(result['bytes']):>6}  {per}")
    return lines


def _beside(results, end, heading):
    """For transports that ran beside something, which a suffix of the name tells: the ratio to the run without it, and
    the spread without it."""
    plain = {_subject(result, result["transport"]): result for result in results}
    lines = []
    for result in results:
        name = result["transport"].removesuffix(end)
        other = plain.get(_subject(result, name))
        if name == result["transport"] or other is None:
            continue
        both = compare(result, other)
        result, other = both.ours, both.peer
        lines.append(f"  {result['place']:<8} {name:<18} {result['measure']:<18} {size_text(result['bytes']):>6}  "
                     f"{cell_text(other):>10} -> {cell_text(result):>10}  x {both.times:.3f}{both.mark}  ({100 * spread_of(other):.0f} %)")
    return ["", heading, *lines] if lines else []


def _subject(result, transport):
    return (transport, *(result[name] for name in ("place", "level", "measure", "bytes", "window", "wait")))


def render(report):
    lines = []
    for place in ("inside", "between"):
        for level in LEVELS:
            lines += _block(place, level, report["results"], report["settings"].get("crowd", CROWD_RANKS))
    lines += _cpu(report["results"])
    for end, heading in _COMPARED.items():
        lines += _beside(report["results"], end, heading)
    won = warnings(report["results"])
    lines += ["", "A peer is ahead by more than the spread of the line", *(f"  {line}" for line in won)] if won else []
    if report["skipped"]:
        lines += ["", "Not measured"]
        reasons = {}
        for entry in report["skipped"]:
            reasons.setdefault((entry["place"], entry["transport"], entry["reason"]), []).append(entry["group"])
        lines += [f"  {place}, {transport} ({', '.join(groups)}): {reason}"
                  for (place, transport, reason), groups in reasons.items()]
    compared = [found for place in ("inside", "between") for level in LEVELS for row in rows(report["results"], place, level)
                for found in row.comparisons()]
    nearest = report["cache_line_ns"]["nearest"]
    left_out = sum(result["runs_left_out"] for result in report["results"])
    lines += ["", "Medians over the runs of one phase; spread: (largest - smallest) : median, the widest of the line; "
              "x N: so many times as good as the best peer."]
    if any(not found.same_phase for found in compared):
        lines.append("~: one of the two was measured while the processors were near each other, the other while they were far apart.")
    if any(limits.of(result, report["results"]) for result in report["results"]):
        lines.append("bare: that of ours which is nearest to the limit of this machine without any transport; a time is so many "
                     "times the limit, a rate so large a share of it.")
    if nearest:
        lines.append(f"A cache line took {nearest:.0f} ns between the processors at best; {left_out} runs with more than "
                     "twice that before or after are left out. `far`: there was no other, or, behind a ratio, none in common.")
    return "\n".join(lines)
