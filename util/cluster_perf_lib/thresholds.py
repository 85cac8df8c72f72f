"""Finds up to which size a message should leave eagerly on this machine: the options shm_eager and net_eager.

Each size is measured twice over each way of the provider: once with the option so large that the message leaves eagerly,
and once with the option 0, so that the message is announced. The answer is a Markdown table, and the setting."""
import math

from .plan import Group, Item
from .rows import size_text, value_text
from .samples import Samples, lower_is_better
from .transports import BETWEEN, INSIDE, Transport

SIZES = tuple(1 << power for power in range(10, 20))  # 1 KB to 512 KB
OPTIONS = {INSIDE: "FI_CLUSTER_SHM_EAGER", BETWEEN: "FI_CLUSTER_NET_EAGER"}
MEASURES = ("latency", "bandwidth")
_GAIN_MAX = math.log(2)
_EAGER, _ANNOUNCED = "eager", "announced"
_VALUES = {_EAGER: "1m", _ANNOUNCED: "0"}
WAYS = {INSIDE: {"cluster": {}}, BETWEEN: {f"cluster/{link}": {"FI_CLUSTER_LINK": link} for link in ("packet", "udp")}}


def _transport(place, way, kind):
    environment = {**WAYS[place][way], OPTIONS[place]: _VALUES[kind]}
    return Transport(f"{way}, {kind}", (place,), "fabric", "cluster", environment=environment)


def turns(places):
    """The runs for the schedule: both kinds take turns."""
    items = [Item(measure, size, 1 if measure == "latency" else 16) for measure in MEASURES for size in SIZES]
    return [(place, _transport(place.name, way, kind), Group("thresholds", items)) for place in places
            for way in WAYS[place.name] for kind in _VALUES]


def _gain(eager, announced):
    """Above 0: eager is better. A factor of more than 2 counts as 2, since it is a disturbance rather than a difference."""
    ratio = math.log(announced["median"] / eager["median"])
    return max(-_GAIN_MAX, min(_GAIN_MAX, ratio if lower_is_better(eager["unit"]) else -ratio))


def best(gains):
    """`gains` are pairs of a size and what eager gains there, by rising size. Returns the largest size to send eagerly, so
    that the sum of what is gained up to it is largest: one disturbed run moves the answer little. 0 if eager never gains."""
    found, highest, total = 0, 0.0, 0.0
    for size, gain in gains:
        total += gain
        if total > highest:
            found, highest = size, total
    return found


def _results(report, place, way):
    """(measure, size) -> what was found of both kinds; only where both are there."""
    collected = Samples()
    collected.samples = report["samples"]
    found = {}
    for result in collected.results():
        name, _, kind = result["transport"].rpartition(", ")
        if (result["place"], name) == (place, way):
            found.setdefault((result["measure"], result["bytes"]), {})[kind] = result
    return {key: kinds for key, kinds in found.items() if len(kinds) == len(_VALUES)}


def threshold(report, place, way):
    """The largest size that should leave eagerly, or None if nothing was measured."""
    found = _results(report, place, way)
    sizes = sorted({size for _, size in found})
    gains = [(size, sum(_gain(found[measure, size][_EAGER], found[measure, size][_ANNOUNCED])
                        for measure in MEASURES if (measure, size) in found)) for size in sizes]
    return best(gains) if gains else None


def _cell(found, measure, size, kind):
    result = found.get((measure, size), {}).get(kind)
    return value_text(result["median"], result["unit"]) if result else "-"


def _table(report, place, way):
    found = _results(report, place, way)
    yield from ("", f"### {way}, {place}", "",
                "| size | one way, eager | announced | in a window, eager | announced |", "|---:|---:|---:|---:|---:|")
    for size in sorted({size for _, size in found}):
        cells = [_cell(found, measure, size, kind) for measure in MEASURES for kind in _VALUES]
        yield f"| {size_text(size)} | " + " | ".join(cells) + " |"
    size = threshold(report, place, way)
    if size is not None:
        yield from ("", f"Best on this machine: {OPTIONS[place]}={size}" + (" (announce every message)" if size == 0 else ""))


def render(report):
    """Markdown, a table for each way of the provider."""
    lines = [line for place, ways in WAYS.items() for way in ways if threshold(report, place, way) is not None
             for line in _table(report, place, way)]
    lines += ["", "Medians. Set the variable on all nodes; `packet` counts where raw frames are permitted."]
    lines += [f"Not measured: {entry['transport']}: {entry['reason']}" for entry in report["skipped"]]
    return "\n".join(lines)
