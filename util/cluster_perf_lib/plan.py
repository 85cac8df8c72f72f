"""The plan of each mode: groups of items; each group is one run of a measuring program.

An item is MEASURE:BYTES:WINDOW in the syntax of the programs (`fabric_perf --help` explains the measures)."""
from dataclasses import dataclass, field

from .transports import BETWEEN, INSIDE


@dataclass(frozen=True)
class Item:
    measure: str
    bytes: int
    window: int = 1

    def text(self):
        return f"{self.measure}:{self.bytes}:{self.window}"


@dataclass
class Group:
    """The items of one run. `needs` names the abilities that a transport must have."""
    name: str
    items: list
    needs: str = "tagged"
    wait: str = "spin"
    places: tuple = (INSIDE, BETWEEN)  # where it is measured


@dataclass
class Plan:
    groups: list
    bare_inside: list
    bare_between: list
    repetitions: int
    milliseconds: float
    mpi_groups: list = field(default_factory=list)
    crowd_groups: list = field(default_factory=list)  # MPI jobs with more ranks than processors


_KIB, _MIB = 1 << 10, 1 << 20
SIZES = [1, 4, 8, 16, 64, 256, _KIB, 4 * _KIB, 16 * _KIB, 64 * _KIB, 256 * _KIB, _MIB, 4 * _MIB, 16 * _MIB, 64 * _MIB]


def window_for(size):
    """A window large enough to fill any transport, without more memory than needed."""
    if size <= 16 * _KIB:
        return 64
    return 16 if size <= _MIB else 4 if size <= 16 * _MIB else 2


def _each(measure, sizes, window=None):
    return [Item(measure, size, window or window_for(size)) for size in sizes]


def _streams():
    return [Item("stream", 64 * _KIB, 16), Item("stream", _MIB, 16)]


def full():
    """Everything, for the record: about half an hour."""
    rates = [Item("rate", 8, 1 << power) for power in range(9)]
    latency = Group("latency", _each("latency", SIZES, 1))
    bandwidth = Group("bandwidth", _each("bandwidth", SIZES))
    rate = Group("rate", rates)
    both = Group("bidirectional", _each("bidirectional", [4 * _KIB, 64 * _KIB, _MIB, 4 * _MIB]))
    remote = (_each("put_latency", [8, 64, 4 * _KIB], 1) + _each("get_latency", [8, 64, 4 * _KIB], 1)
              + [Item("put_rate", 8, 64)]
              + _each("put", [4 * _KIB, 64 * _KIB, _MIB, 4 * _MIB]) + _each("get", [4 * _KIB, 64 * _KIB, _MIB, 4 * _MIB]))
    shared = (_each("put_shared_latency", [8, 64, 4 * _KIB], 1) + [Item("put_shared_rate", 8, 64)]
              + _each("put_shared", [4 * _KIB, 64 * _KIB, _MIB, 4 * _MIB]) + _each("get_shared", [64 * _KIB, _MIB, 4 * _MIB]))
    return Plan(
        groups=[latency, bandwidth, rate, both,
                Group("pairs", [Item("pairs", 8, pairs) for pairs in (1, 2, 4, 8, 16)]),
                Group("overlap", _each("overlap", [64 * _KIB, _MIB, 4 * _MIB], 1)),
                Group("remote", remote, needs="rma"),
                Group("shared", shared, needs="rma", places=(INSIDE,)),
                Group("atomic", [Item("fetch_add_latency", 8), Item("fetch_add", 8, 64)], needs="atomic"),
                Group("cpu", [Item("latency", 8), Item("wake", 8), Item("rate", 8, 64), Item("bandwidth", _MIB, 16)], wait="block")],
        mpi_groups=[latency, bandwidth, rate, both],
        crowd_groups=[Group("crowd", [Item("barrier", 0), Item("ring", 64 * _KIB), Item("alltoall", 64)], needs="MPI")],
        bare_inside=[Item("ring", size) for size in (8, 16, 64, 256, 1024, 4096)]
        + [Item("ring_rate", 8, 256), Item("futex", 8)] + [Item("copy", size) for size in SIZES if size >= 4 * _KIB],
        bare_between=[*(Item("frame", size) for size in (64, 256, 1024, 1400)), Item("frame_rate", 64, 64),
                      Item("frame_rate", 1400, 64), Item("asleep", 64), *_streams()],
        repetitions=5, milliseconds=60)


def quick():
    """The figures in the project's targets, in less than three minutes."""
    common = Group("common", [Item("latency", 8), Item("latency", 64), Item("latency", 4 * _KIB), Item("rate", 8, 64),
                              Item("bandwidth", 4 * _KIB, 64), Item("bandwidth", 64 * _KIB, 16), Item("bandwidth", _MIB, 16)])
    mpi = Group("common", [Item("latency", 8), Item("rate", 8, 64), Item("bandwidth", 64 * _KIB, 16),
                           Item("bandwidth", _MIB, 16)])
    remote = Group("remote", [Item("put_latency", 8), Item("put_rate", 8, 64), Item("put", _MIB, 16)], needs="rma")
    shared = Group("shared", [Item("put_shared_latency", 8), Item("put_shared", _MIB, 16)], needs="rma", places=(INSIDE,))
    return Plan(groups=[common, remote, shared], mpi_groups=[mpi],
                bare_inside=[Item("ring", 8), Item("ring", 64), Item("ring_rate", 8, 64),
                             *_each("copy", [4 * _KIB, 64 * _KIB, _MIB], 1)],
                bare_between=[Item("frame", 64), Item("frame_rate", 64, 64), *_streams()], repetitions=2, milliseconds=20)


def readme():
    """The table of the README, in about five minutes."""
    inside, between = (INSIDE,), (BETWEEN,)
    rate, large = Item("rate", 8, 64), [Item("bandwidth", 64 * _KIB, 16), Item("bandwidth", _MIB, 16)]
    between_items = [*_each("latency", [64, 4 * _KIB, 64 * _KIB], 1), rate, *large]
    groups = [
        Group("tagged", [*_each("latency", [8, 4 * _KIB], 1), rate, Item("bandwidth", 4 * _KIB, 64), *large], places=inside),
        Group("tagged", between_items, places=between),
        Group("remote", [Item("put_latency", 8), Item("put_rate", 8, 64), Item("put", _MIB, 16), Item("get", _MIB, 16)],
              needs="rma", places=inside),
        Group("shared", [Item("put_shared_latency", 8), Item("put_shared_rate", 8, 64), Item("put_shared", _MIB, 16),
                         Item("get_shared", _MIB, 16)], needs="rma", places=inside),
        Group("remote", [Item("put_latency", 8), Item("put", _MIB, 16)], needs="rma", places=between),
        Group("cpu", [Item("latency", 8), Item("wake", 8)], wait="block", places=inside),
        Group("cpu", [Item("latency", 8), Item("wake", 8), Item("bandwidth", _MIB, 16)], wait="block", places=between)]
    return Plan(groups=groups,
                mpi_groups=[Group("mpi", [Item("latency", 8), rate], places=inside),
                            Group("mpi", between_items, places=between)],
                bare_inside=[Item("ring", 8), Item("ring_rate", 8, 64), Item("futex", 8),
                             *_each("copy", [4 * _KIB, 64 * _KIB, _MIB], 1)],
                bare_between=[Item("frame", 64), Item("frame_rate", 64, 64), Item("asleep", 64), *_streams()],
                repetitions=9, milliseconds=60)


def papers():
    """What the page about the papers compares by size."""
    latency = Group("latency", _each("latency", [8, 64, _KIB, 4 * _KIB, 16 * _KIB, 64 * _KIB, _MIB], 1))
    bandwidth = Group("bandwidth", _each("bandwidth", [64, _KIB, 4 * _KIB, 16 * _KIB, 64 * _KIB, 256 * _KIB, _MIB, 4 * _MIB]))
    asleep = Group("asleep", [Item("latency", 8), Item("bandwidth", _MIB, 16)], wait="block", places=(BETWEEN,))
    return Plan(groups=[latency, bandwidth, asleep], mpi_groups=[latency, bandwidth, asleep], bare_inside=_each("copy", [_MIB], 1),
                bare_between=_streams(), repetitions=5, milliseconds=60)


def papers_quick():
    chosen = papers()
    chosen.repetitions, chosen.milliseconds = 2, 20
    return chosen


def demo():
    """MPI only, for util/demo."""
    mpi = Group("demo", [Item("latency", 8), Item("latency", _KIB), Item("latency", 64 * _KIB), Item("bandwidth", _MIB, 16),
                         Item("rate", 8, 64)])
    return Plan(groups=[], mpi_groups=[mpi], bare_inside=[], bare_between=[], repetitions=3, milliseconds=80)


def smoke():
    """Shows in a few seconds that everything works."""
    common = Group("common", [Item("latency", 8), Item("rate", 8, 16), Item("bandwidth", 64 * _KIB, 4)])
    return Plan(groups=[common, Group("remote", [Item("put", 4 * _KIB, 4)], needs="rma")], mpi_groups=[],
                bare_inside=[Item("ring", 8), Item("copy", 64 * _KIB)],
                bare_between=[Item("frame", 64), Item("stream", 64 * _KIB, 4)], repetitions=1, milliseconds=2)


def with_only(plan, measures):
    """The plan reduced to some measures; it keeps the bare limits."""
    for groups in (plan.groups, plan.mpi_groups, plan.crowd_groups):
        for group in groups:
            group.items = [item for item in group.items if item.measure in measures]
        groups[:] = [group for group in groups if group.items]
    return plan


def measures():
    """The measures, and the abilities that each needs from a transport."""
    everything = full()
    return {item.measure: group.needs for group in everything.groups + everything.crowd_groups for item in group.items}
