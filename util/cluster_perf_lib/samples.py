"""All figures of all runs, each with the phase the processors were in; medians of one phase; comparisons.

The distance between two virtual processors changes, and with it everything that passes through memory (a factor of two
to four). A run belongs to the near phase if a cache line took at most twice the shortest time seen, before it and after
it. Medians cover near runs; where a transport has none they cover all its runs, and the report says so. Two figures are
compared in a phase that both have, if possible the near one. Without a common phase they are compared anyway, and the
ratio is marked."""
from dataclasses import dataclass
from statistics import median

_NEAR_FACTOR = 2.0


def lower_is_better(unit):
    return unit in ("us", "s/GB")


class Samples:
    """All samples. A key is (place, level, transport, measure, bytes, window)."""

    def __init__(self):
        self.samples = []
        self.skipped = []  # dictionaries: place, transport, group, reason

    def add(self, place, transport, group, run, samples):
        for sample in samples:
            self.samples.append({"place": place, "level": transport.level, "transport": transport.name,
                                 "group": group.name, "wait": group.wait, "run": run, **sample})

    def skip(self, place, transport, group, reason):
        entry = {"place": place, "transport": transport.name, "group": group.name, "reason": reason}
        if entry not in self.skipped:
            self.skipped.append(entry)

    def nearest(self):
        distances = [ns for sample in self.samples for ns in sample["line_ns"] if ns > 0]
        return min(distances) if distances else 0.0

    def is_near(self, sample):
        worst = max(sample["line_ns"])
        return 0 < worst <= _NEAR_FACTOR * self.nearest()

    def lacks_near_run(self, place, transport, group):
        """True if this was measured, but never while the processors were near each other."""
        mine = [sample for sample in self.samples if (sample["place"], sample["transport"], sample["group"])
                == (place, transport.name, group.name)]
        near = {_key(sample) for sample in mine if self.is_near(sample)}
        return any(max(sample["line_ns"]) > 0 and _key(sample) not in near for sample in mine)

    def results(self):
        """One dictionary per key: medians with spread, over the runs of one phase."""
        by_key = {}
        for sample in self.samples:
            by_key.setdefault(_key(sample), []).append(sample)
        return [self._result(runs) for runs in by_key.values()]

    def _result(self, runs):
        near = [run for run in runs if self.is_near(run)]
        known = any(max(run["line_ns"]) > 0 for run in runs)
        chosen = near or runs
        first = chosen[0]
        result = {name: first[name] for name in ("place", "level", "transport", "measure", "bytes", "window", "wait", "unit")}
        result.update({**_middle(chosen), "runs_left_out": len(runs) - len(chosen),
                       "phase": "near" if near else "far" if known else "unknown"})
        far = [run for run in runs if max(run["line_ns"]) > 0 and not self.is_near(run)]
        if near and far:
            result["far"] = _middle(far)
        for name in ("p50", "p99", "p999"):
            if all(name in run for run in chosen):
                result[name] = median(run[name] for run in chosen)
        if all("cpu_seconds" in run and run["messages"] for run in chosen):
            result["cpu_us_per_message"] = median(1e6 * run["cpu_seconds"] / run["messages"] for run in chosen)
            if result["bytes"] >= 4096:
                result["cpu_seconds_per_gb"] = median(1e9 * run["cpu_seconds"] / run["volume"] for run in chosen)
        return result


def _middle(runs):
    values = [run["value"] for run in runs]
    return {"median": median(values), "smallest": min(values), "largest": max(values), "runs": len(runs)}


def _key(sample):
    return tuple(sample[name] for name in ("place", "level", "transport", "measure", "bytes", "window", "wait"))


def _subject(result):
    return tuple(result[name] for name in ("place", "level", "measure", "bytes", "window", "wait"))


def is_ours(name):
    return name.removeprefix("mpi:").partition("/")[0] == "cluster"


def spread_of(result):
    return (result["largest"] - result["smallest"]) / result["median"]


def times_as_good(result, other):
    """Above 1: `result` is better, whatever the unit."""
    times = result["median"] / other["median"]
    return 1 / times if lower_is_better(result["unit"]) else times


@dataclass
class Comparison:
    """Two figures of one subject, with medians above zero."""
    ours: dict
    peer: dict

    @property
    def times(self):
        return times_as_good(self.ours, self.peer)

    @property
    def same_phase(self):
        return self.ours["phase"] == self.peer["phase"]

    def spread(self):
        """The wider of the two, as a share of the median."""
        return max(spread_of(self.ours), spread_of(self.peer))

    @property
    def mark(self):
        return "" if self.same_phase else "~"


def _in_phase(result, phase):
    """The figures of a result in a phase, or None if it has no runs of that."""
    if result["phase"] == phase:
        return result
    return {**result, **result["far"], "phase": phase} if phase == "far" and "far" in result else None


def compare(ours, peer):
    for phase in ("near", "far", "unknown"):
        both = Comparison(_in_phase(ours, phase), _in_phase(peer, phase))
        if both.ours and both.peer:
            return both
    return Comparison(ours, peer)


def ratios(results):
    """The speedup of each of ours over each peer: above 1 is better, whatever the unit."""
    found = []
    for ours in (result for result in results if is_ours(result["transport"])):
        for peer in (result for result in results if not is_ours(result["transport"])):
            if _subject(ours) != _subject(peer) or not ours["median"] or not peer["median"]:
                continue
            both = compare(ours, peer)
            found.append({**{name: ours[name] for name in ("place", "level", "measure", "bytes", "window", "wait")},
                          "transport": ours["transport"], "peer": peer["transport"], "times": both.times,
                          "same_phase": both.same_phase})
    return found
