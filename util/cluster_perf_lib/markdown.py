"""The table of the README: a table in Markdown for each place, the best peer and the bare limit beside our figures."""
from . import limits
from .machine import class_of, in_words
from .rows import LEVELS, Row, cell_text, rows, transport_text
from .samples import is_ours
from .table import warnings

_HEADS = {"inside": "inside a node", "between": "between nodes"}
_BEFORE = {"mpi": "MPI, ", "crowd": "MPI, more ranks than processors, "}


def _processor_time(row):
    """The row with the cost of a gigabyte on both sides, from a row in which they slept while waiting; None if
    unknown."""
    cells = {name: {**{key: value for key, value in result.items() if key != "far"}, "median": result["cpu_seconds_per_gb"], "unit": "s/GB"}
             for name, result in row.cells.items() if "cpu_seconds_per_gb" in result}
    return Row(row.place, row.level, f"processor time, {row.name}", cells) if cells else None


def _rows(results, place):
    spinning = [result for result in results if result["wait"] != "block"]
    asleep = [result for result in results if result["wait"] == "block"]
    found = [row for level in LEVELS if level != "bare" for row in rows(spinning, place, level)]
    sleeping = rows(asleep, place, "fabric")
    return found + sleeping + [row for row in map(_processor_time, sleeping) if row]


def _columns(block):
    """Our transports by their short names: that of MPI over one stands in the same column."""
    return list(dict.fromkeys(transport_text(name) for row in block for name in row.cells if is_ours(name)))


def _line(row, columns, results):
    by_column = {transport_text(name): result for name, result in row.cells.items() if is_ours(name)}
    peer, times = "-", "-"
    found = max(row.comparisons(), key=lambda each: each.times, default=None)
    if found:
        peer = f"{transport_text(found.peer['transport'])} {cell_text(found.peer)}"
        times = f"{found.times:.2f}{found.mark}"
    pair = None if any(result["unit"] == "s/GB" for result in row.cells.values()) else limits.nearest(row, results)
    cells = [_BEFORE.get(row.level, "") + row.name, *(cell_text(by_column.get(name)) for name in columns), peer, times,
             limits.text(*pair) if pair else "-"]
    return "| " + " | ".join(cells) + " |"


def _apart(results):
    """The figures of the runs during which the processors were far from each other, where a transport of ours and a peer have such."""
    far = [{**result, **result["far"], "phase": "unknown"} for result in results if "far" in result]
    far = [{name: value for name, value in result.items() if name != "far" and not name.startswith("cpu_")} for result in far]
    subjects = {kind: {_subject(result) for result in far if is_ours(result["transport"]) == kind} for kind in (True, False)}
    return [result for result in far if _subject(result) in subjects[True] & subjects[False]]


def _subject(result):
    return tuple(result[name] for name in ("place", "level", "measure", "bytes", "window", "wait"))


def _table(results, place, head=""):
    block = [row for row in _rows(results, place) if row.ours()]
    if not block:
        return []
    columns = _columns(block)
    head = [_HEADS[place] + head, *columns, "best peer", "times as good", "bare limit"]
    return ["", "| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1),
            *(_line(row, columns, results) for row in block)]


def render(report):
    """The document: revision, machine, kernel and date, then the tables and how to read them."""
    settings, results = report["settings"], report["results"]
    lines = [f"Measured by `cluster-perf{_option(settings['mode'])}` on {in_words(report['machine'])}; a machine "
             f"{class_of(report['cache_line_ns']['nearest'])}."]
    for place in _HEADS:
        lines += _table(results, place)
    for place in _HEADS:
        lines += _table(_apart(results), place, ", processors apart")
    lines += ["", f"Medians over up to {settings['repetitions']} runs of {settings['milliseconds']:g} ms each, in one phase of the "
              "processors (`far`: a cache line took more than twice the shortest time). Times as good: the best of our "
              "transports beside the best peer; `~`: in different phases, for they have none in common. Bare limit: a time is so "
              "many times what the machine takes without any transport, a rate so large a share of it."]
    if _apart(results):
        lines[-1] += " Processors apart: the runs during which they shared no cache, as on a machine whose processors never do."
    won = warnings(results)
    return "\n".join(lines + (["", "A peer is ahead by more than the spread:", "", *(f"- {line}" for line in won)] if won else []))


def _option(mode):
    return "" if mode in ("full", "demo") else f" --{mode}"
