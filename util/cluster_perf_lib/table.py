"""The text: one table per place and level, a line per measure, a column per transport, ratios beside peers."""
from .samples import is_ours

_TITLES = {("inside", "fabric"): "Inside a node, libfabric and UCX", ("inside", "mpi"): "Inside a node, MPI",
           ("inside", "bare"): "Inside a node, bare limits", ("between", "fabric"): "Between nodes, libfabric and UCX",
           ("between", "mpi"): "Between nodes, MPI", ("between", "bare"): "Between nodes, bare limits"}
_WIDTH, _BESIDE = 16, 24


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
    scale, name = (1e9, "GB/s") if unit == "B/s" else (1e6, "M/s")
    return f"{value / scale:,.2f} {name}"


def _row_name(result):
    name = f"{result['measure'].replace('_', ' ')} {size_text(result['bytes'])}"
    if result["measure"] == "pairs":
        name += f", {result['window']} pairs"
    elif result["window"] > 1:
        name += f" x {result['window']}"
    return name + (", waiting asleep" if result["wait"] == "block" else "")


def _cell(result):
    if result is None:
        return "-"
    mark = {"near": "", "far": " far", "unknown": ""}[result["phase"]]
    return value_text(result["median"], result["unit"]) + mark


def _spread(row):
    """The widest spread among the cells of a line, as a share of the median."""
    widths = [(result["largest"] - result["smallest"]) / result["median"] for result in row.values() if result["median"]]
    return f"{100 * max(widths):.0f} %" if widths else "-"


def _ratio_cells(row):
    """`x 1.8 shm` for each of ours: beside the best peer that was measured in the same phase."""
    cells = []
    for name, ours in row.items():
        if not is_ours(name):
            continue
        peers = [(peer, result) for peer, result in row.items()
                 if not is_ours(peer) and result["phase"] == ours["phase"] and result["median"]]
        if not peers or not ours["median"]:
            cells.append("-")
            continue
        lower = ours["unit"] == "us"
        best, result = (min if lower else max)(peers, key=lambda entry: entry[1]["median"])
        times = result["median"] / ours["median"] if lower else ours["median"] / result["median"]
        cells.append(f"x {times:.2f} {best}")
    return cells


def _block(place, level, results):
    mine = [result for result in results if (result["place"], result["level"]) == (place, level)]
    if not mine:
        return []
    transports = sorted({result["transport"] for result in mine}, key=lambda name: (not is_ours(name), name))
    rows = {}
    for result in mine:
        rows.setdefault(_row_name(result), {})[result["transport"]] = result
    width = max([len(name) for name in rows] + [20]) + 2
    ours = [name for name in transports if is_ours(name)]
    beside = [f"{name.removeprefix('mpi:')} : best" for name in ours if len(transports) > len(ours)]
    lines = ["", _TITLES[place, level],
             " " * width + "".join(f"{name.removeprefix('mpi:'):>{_WIDTH}}" for name in transports) + f"{'spread':>9}"
             + "".join(f"{head:>{_BESIDE}}" for head in beside)]
    for name, row in rows.items():
        row = {transport: row[transport] for transport in transports if transport in row}
        cells = [f"{_cell(row.get(transport)):>{_WIDTH}}" for transport in transports]
        cells.append(f"{_spread(row):>9}")
        cells += [f"{cell:>{_BESIDE}}" for cell in _ratio_cells(row)]
        lines.append(f"{name:<{width}}" + "".join(cells))
    return lines


def _cpu(results):
    """Processor time of both sides, where they waited asleep: a side that spins uses all there is."""
    mine = [result for result in results if result["wait"] == "block" and "cpu_us_per_message" in result]
    lines = ["", "Processor time of both sides together, waiting asleep"] if mine else []
    for result in mine:
        per = (f"{result['cpu_seconds_per_gb']:.3f} s per GB" if "cpu_seconds_per_gb" in result
               else f"{result['cpu_us_per_message']:.3f} us per message")
        lines.append(f"  {result['place']:<8} {result['transport']:<18} {result['measure']:<10} "
                     f"{size_text(result['bytes']):>6}  {per}")
    return lines


def render(report):
    lines = []
    for place in ("inside", "between"):
        for level in ("fabric", "mpi", "bare"):
            lines += _block(place, level, report["results"])
    lines += _cpu(report["results"])
    if report["skipped"]:
        lines += ["", "Not measured"]
        reasons = {}
        for entry in report["skipped"]:
            reasons.setdefault((entry["place"], entry["transport"], entry["reason"]), []).append(entry["group"])
        lines += [f"  {place}, {transport} ({', '.join(groups)}): {reason}"
                  for (place, transport, reason), groups in reasons.items()]
    nearest = report["cache_line_ns"]["nearest"]
    left_out = sum(result["runs_left_out"] for result in report["results"])
    lines += ["", "Medians over the runs of one phase; spread: (largest - smallest) : median, the widest of the line; "
              "x N: so many times as good as the best peer."]
    if nearest:
        lines.append(f"A cache line took {nearest:.0f} ns between the processors at best; {left_out} runs with more than "
                     "twice that before or after are left out. `far`: there was no other.")
    return "\n".join(lines)
