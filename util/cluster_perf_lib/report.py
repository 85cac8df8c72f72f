"""The figures for programs, and the check that none is missing."""
import json
import math

from . import limits
from . import samples as arithmetic

FORMAT = 1

_NUMBER = (int, float)
_SCHEMA = {
    "samples": {"place": str, "level": str, "transport": str, "group": str, "wait": str, "run": int, "measure": str,
                "bytes": int, "window": int, "value": _NUMBER, "unit": str, "messages": _NUMBER, "seconds": _NUMBER,
                "line_ns": list},
    "results": {"place": str, "level": str, "transport": str, "measure": str, "bytes": int, "window": int, "wait": str,
                "unit": str, "median": _NUMBER, "smallest": _NUMBER, "largest": _NUMBER, "runs": int,
                "runs_left_out": int, "phase": str},
    "ratios": {"place": str, "level": str, "transport": str, "peer": str, "measure": str, "bytes": int, "window": int,
               "times": _NUMBER, "same_phase": bool},
    "limits": {"place": str, "level": str, "transport": str, "measure": str, "bytes": int, "window": int, "bare": str,
               "bare_bytes": int, "limit": _NUMBER, "times": _NUMBER},
    "skipped": {"place": str, "transport": str, "group": str, "reason": str},
}
_UNITS = {"us", "1/s", "B/s", "%"}


def make(machine, settings, collected):
    results = collected.results()
    return {"format": FORMAT, "machine": machine, "settings": settings,
            "cache_line_ns": {"nearest": collected.nearest(),
                              "near_means_at_most": 2 * collected.nearest()},
            "samples": collected.samples, "results": results, "ratios": arithmetic.ratios(results),
            "limits": limits.beside(results), "skipped": collected.skipped}


def condensed(report):
    """The report without the single samples: the part worth keeping for years."""
    return {**report, "samples": []}


def write(report, path):
    """One line per entry: short enough to read, and to compare line by line."""
    parts = []
    for key, value in report.items():
        if isinstance(value, list) and value:
            lines = ",\n".join("  " + json.dumps(entry) for entry in value)
            parts.append(f" {json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value)}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(parts) + "\n}\n")


def _wrong_values(kind, entry):
    if kind == "samples":
        if len(entry["line_ns"]) != 2:
            yield "line_ns is no pair"
        if entry["seconds"] <= 0 or entry["messages"] <= 0:
            yield "nothing was transferred"
    value = entry.get("value", entry.get("median", entry.get("times")))
    if value is not None and (not math.isfinite(value) or value < 0 or (value == 0 and entry.get("unit") != "%")):
        yield f"{value} is no figure"
    if "unit" in entry and entry["unit"] not in _UNITS:
        yield f"unknown unit {entry['unit']}"
    if kind == "results" and not entry["smallest"] <= entry["median"] <= entry["largest"]:
        yield "the median lies outside of its spread"


def faults(report):
    """The defects of a report, one line each; empty if it is complete and plausible."""
    found = []
    if report.get("format") != FORMAT:
        found.append(f"format {report.get('format')} instead of {FORMAT}")
    for key in ("machine", "settings", "cache_line_ns"):
        if not isinstance(report.get(key), dict):
            found.append(f"no {key}")
    for kind, fields in _SCHEMA.items():
        entries = report.get(kind)
        if not isinstance(entries, list) or (not entries and kind in ("samples", "results")):
            found.append(f"no {kind}")
            continue
        for number, entry in enumerate(entries):
            bad = [name for name, wanted in fields.items()
                   if not isinstance(entry.get(name), wanted) or (wanted is not bool and isinstance(entry.get(name), bool))]
            found += [f"{kind}[{number}]: {name} is missing or of another kind" for name in bad]
            found += [] if bad else [f"{kind}[{number}]: {text}" for text in _wrong_values(kind, entry)]
    return found
