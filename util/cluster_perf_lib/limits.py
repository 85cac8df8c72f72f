"""The bare limit of a figure: the result of the simplest possible code on the same machine in the same run.

_LIMITS says which item of bare_perf bounds which measure. The limit assumes one copy, one cache line, one frame at a
time. A transport can beat it if both sides copy, or if many messages share a frame."""
from dataclasses import dataclass

from .rows import value_text
from .samples import times_as_good
from .transports import BETWEEN, INSIDE

_KIB, _MIB, _ANY = 1 << 10, 1 << 20, 1 << 62


@dataclass(frozen=True)
class Limit:
    place: str
    measures: tuple
    least: int  # bytes of a message, from here
    most: int  # up to here
    bare: str
    bytes: int = 0  # of the bare item; 0: those of the message
    wait: str = ""  # how the sides wait; empty: any way


_LIMITS = (  # the first that applies counts
    Limit(INSIDE, ("wake",), 0, 64, "futex", 8, "block"),
    Limit(BETWEEN, ("wake",), 0, 64, "asleep", 64, "block"),
    Limit(INSIDE, ("latency", "put_latency", "put_shared_latency"), 0, 8, "ring", 8),
    # Each slot of the ring has a number, so with more slots it is slower than a transport that copies the message as a
    # whole.
    Limit(INSIDE, ("latency", "put_latency", "put_shared_latency"), 9, 256, "ring"),
    Limit(INSIDE, ("latency",), 16 * _KIB, _ANY, "copy"),  # a smaller copy takes next to no time
    Limit(INSIDE, ("rate", "put_rate", "put_shared_rate"), 0, 8, "ring_rate", 8),
    Limit(INSIDE, ("bandwidth", "put", "get", "put_shared", "get_shared"), 0, _ANY, "copy"),
    Limit(BETWEEN, ("latency", "put_latency"), 0, 64, "frame", 64),
    Limit(BETWEEN, ("latency",), 65, 1400, "frame"),
    Limit(BETWEEN, ("rate", "put_rate"), 0, 64, "frame_rate", 64),
    Limit(BETWEEN, ("bandwidth", "put", "get"), 64 * _KIB, _MIB, "stream"),
)


def _applies(limit, result):
    return (limit.place == result["place"] and result["measure"] in limit.measures
            and limit.least <= result["bytes"] <= limit.most and limit.wait in ("", result["wait"]))


def of(result, results):
    """The bare result that bounds this one, from the same phase and in the same unit; or None."""
    if result["level"] not in ("fabric", "mpi") or not result["median"]:
        return None
    for limit in _LIMITS:
        if not _applies(limit, result):
            continue
        wanted = (result["place"], "bare", limit.bare, limit.bytes or result["bytes"], result["phase"])
        for bare in results:
            found = tuple(bare[name] for name in ("place", "level", "measure", "bytes", "phase"))
            if found == wanted and bare["median"]:
                return _in_unit(bare, result["unit"])
    return None


def _in_unit(bare, unit):
    """Converts bytes per second to the time of one message, if the unit is a time."""
    if (bare["unit"], unit) == ("B/s", "us"):
        return {**bare, "unit": unit, "median": 1e6 * bare["bytes"] / bare["median"]}
    return bare


def text(result, bare):
    """`1.6 of 0.13 us`: for a time, the multiple of the limit; for a rate, the share of it."""
    if bare is None:
        return "-"
    times = result["median"] / bare["median"]
    return f"{times:.{2 if times < 1 else 1}f} of {value_text(bare['median'], bare['unit'])}"


def nearest(row, results):
    """(result, bare) of the transport of ours in a row that comes nearest to its limit; or None."""
    pairs = [(result, of(result, results)) for result in row.ours()]
    pairs = [(result, bare) for result, bare in pairs if bare]
    return max(pairs, key=lambda pair: times_as_good(*pair)) if pairs else None


def beside(results):
    """For programs: the ratio to the limit of each figure of ours and of peers that has one; below 1 is worse."""
    found = []
    for result in results:
        bare = of(result, results)
        if bare:
            found.append({**{name: result[name] for name in ("place", "level", "transport", "measure", "bytes", "window", "wait")},
                          "bare": bare["measure"], "bare_bytes": bare["bytes"], "limit": bare["median"],
                          "times": times_as_good(result, bare)})
    return found
