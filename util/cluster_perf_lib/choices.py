"""Compares the provider's way to send and receive frames between nodes with the alternatives, measured without the
provider.

A question compares several ways. Each way is a set of options of `bare_perf`; the provider's own way is marked. The
answer is a Markdown table."""
from dataclasses import dataclass
from statistics import median

from .errors import PerfError
from .plan import Group, Item
from .rows import size_text, value_text
from .samples import lower_is_better
from .transports import BETWEEN, Transport

# As os/packet_sender.cc and os/packet_ring.cc do it.
_OURS = {"frames-as": "udp", "vnet-header": True, "send-by": "sendmmsg", "batch": 32, "receive-by": "ring",
         "slot-bytes": 65664, "slots": 64, "behind": "filter"}
_SAME_PHASE = 1.6  # runs whose cache-line time differs from the usual one by more than this factor are left out


@dataclass(frozen=True)
class Way:
    label: str
    differs: dict  # from _OURS
    items: tuple = ()  # empty: those of the question

    @property
    def arguments(self):
        options = {**_OURS, **self.differs}
        return tuple(word for name, value in options.items() if value is not False
                     for word in ((f"--{name}",) if value is True else (f"--{name}", str(value))))


@dataclass(frozen=True)
class Question:
    name: str
    title: str
    items: tuple
    ways: tuple


_SMALL = (Item("frame", 64), Item("frame_rate", 64, 64))
_SUPER = tuple(Item("super", segments, 16) for segments in (1, 4, 8, 16, 32, 44))


def _calls():
    calls = (("send", {"send-by": "send"}), ("sendmmsg of 32", {}), ("TX ring, 32 a call", {"send-by": "tx_ring"}))
    for label, call in calls:
        for vnet in (True, False):
            for qdisc in (False, True):
                differs = {**call, **({"qdisc": True} if qdisc else {}), **({} if vnet else {"vnet-header": False})}
                yield Way(f"{label}, {'qdisc' if qdisc else 'bypass'}, {'vnet header' if vnet else 'no vnet header'}", differs)


QUESTIONS = (
    Question("send", "The call that sends small frames", _SMALL, tuple(_calls())),
    Question("batch", "How many small frames a call", (Item("frame_rate", 64, 64),), (
        *(Way(f"sendmmsg of {batch}", {"batch": batch} if batch != _OURS["batch"] else {}) for batch in (1, 8, 32)),
        *(Way(f"TX ring, {batch} a call", {"send-by": "tx_ring", "batch": batch}) for batch in (1, 8, 32)))),
    Question("receive", "How small frames are received", _SMALL, (
        Way("ring, 1024 slots of 2048 B", {"slot-bytes": 2048, "slots": 1024}),
        Way("ring, 64 slots of 65664 B", {}),
        Way("recv()", {"receive-by": "recv"}))),
    Question("super_send", "The way a super-frame is sent", _SUPER, (
        Way("gathered pieces", {}),
        Way("copied together first", {"staged": True}),
        Way("TX ring", {"send-by": "tx_ring"}))),
    Question("super_receive", "The way a super-frame is received", (Item("super", 8, 16), Item("super", 44, 16)), (
        *(Way(f"ring of {slots} slots", {"slots": slots} if slots != _OURS["slots"] else {}) for slots in (32, 64, 128)),
        Way("recv(), then copied", {"receive-by": "recv"}),
        Way("recv() into place", {"receive-by": "in_place"}))),
    Question("look", "What the second look of the kernel's IP input costs",
             (*_SMALL, Item("super", 44, 16)), (
                 Way("no IP: an experimental EtherType", {"frames-as": "experimental"}, _SMALL),
                 Way("IP drops it first (wrong header checksum)", {"behind": "bad_sum"}),
                 Way("socket that ignores the interface, UDP_GRO", {}),
                 Way("the same without UDP_GRO", {"behind": "no_gro"}),
                 Way("socket that refuses everything", {"behind": "deaf"}),
                 Way("socket that is connected, ignores the interface", {"behind": "connected"}),
                 Way("socket without filter, with a full buffer", {"behind": "full"}),
                 Way("no socket", {"behind": "nothing"}),
                 Way("ring of all interfaces", {"tap": "type"}),
                 Way("ring before IP (ETH_P_ALL)", {"tap": "interface"}))),
    Question("poll", "Whether a UDP socket should poll the driver", (Item("datagram", 64),), (
        Way("recv() again and again", {"sleep": False}),
        Way("sleeping in recv()", {"sleep": True}),
        Way("sleeping in recv(), SO_BUSY_POLL 50 us", {"sleep": True, "busy-poll": 50}))),
)


def chosen(names):
    """The questions of these names, in the order of the table; all if there are none."""
    known = [question.name for question in QUESTIONS]
    for name in names:
        if name not in known:
            raise PerfError(f"--choices: '{name}' is unknown; there are {', '.join(known)}")
    return [question for question in QUESTIONS if not names or question.name in names]


def _transport(question, way):
    return Transport(f"{question.name}: {way.label}", (BETWEEN,), "bare", arguments=way.arguments)


def turns(questions, place):
    """The runs for the schedule."""
    return [(place, _transport(question, way), Group(question.name, list(way.items or question.items)))
            for question in questions for way in question.ways]


def _head(item):
    if item.measure == "super":
        return f"{item.bytes} segments"
    return {"frame": "one way", "datagram": "one way"}.get(item.measure, "stream") + f", {size_text(item.bytes)}"


def _usual(samples):
    """The distance of the processors in most runs of a question: only runs at the same distance are comparable."""
    return median(max(sample["line_ns"]) for sample in samples)


def in_phase(samples):
    """The samples taken at the usual distance, both before and after the run."""
    usual = _usual(samples)
    return [sample for sample in samples
            if usual / _SAME_PHASE <= min(sample["line_ns"]) and max(sample["line_ns"]) <= usual * _SAME_PHASE]


def _figure(item, value):
    """For streams, the time of one frame."""
    if item.measure == "frame_rate":
        return f"{1e9 / value:,.0f} ns"
    return value_text(value, "B/s" if item.measure == "super" else "us")


def _cell(item, samples):
    """The best run, and the median in brackets: a virtual machine can be half as fast for a while, and the two figures
    show that."""
    mine = [sample for sample in samples if (sample["measure"], sample["bytes"]) == (item.measure, item.bytes)]
    if not mine:
        return "-"
    values = [sample["value"] for sample in mine]
    best = (min if lower_is_better(mine[0]["unit"]) else max)(values)
    return f"{_figure(item, best)} ({_figure(item, median(values)).rpartition(' ')[0]})"


def _row(question, way, samples):
    mine = [sample for sample in samples if sample["transport"] == _transport(question, way).name]
    cells = [_cell(item, mine) for item in question.items]
    distances = [ns for sample in mine for ns in sample["line_ns"]]
    label = f"**{way.label}**" if not way.differs else way.label
    return "| " + " | ".join([label, *cells, f"{median(distances):.0f} ns" if distances else "-"]) + " |"


def render(report):
    """Markdown, a table per question."""
    lines = []
    for question in QUESTIONS:
        samples = [sample for sample in report["samples"] if sample["group"] == question.name]
        if not samples:
            continue
        kept = in_phase(samples)
        lines += ["", f"### {question.title}", "",
                  "| way | " + " | ".join(map(_head, question.items)) + " | line |",
                  "|---|" + "---:|" * (len(question.items) + 1)]
        lines += [_row(question, way, kept) for way in question.ways]
        lines += ["", f"{len(kept)} of {len(samples)} figures; the others met another distance of the processors."]
    lines += ["", "The best run, and in brackets the median; the provider's way is bold. Streams: time per frame; segments: payload per "
              "second in super-frames of so many. `line`: what a cache line took between the processors meanwhile."]
    lines += [f"Not measured: {entry['transport']}: {entry['reason']}" for entry in report["skipped"]]
    return "\n".join(lines)
