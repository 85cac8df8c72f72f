"""The page about the papers that the provider stands on: their tables and figures, and ours in the same form.

It keeps the newest run on each class of machine, in a file of figures beside it. What a paper says itself is here only with its
source; what is not at hand is named so."""
import json
import os
import textwrap
from dataclasses import dataclass

from . import paper_programs
from .machine import BUSY, CLASS_FAR, CLASS_NEAR, SHARED_CACHE_NS, class_of, in_words
from .paper_figures import (NOT_AT_HAND, ON_NODE, ON_NODE_MPI, OURS, OURS_MPI, OVER_IP, OVER_IP_ASLEEP, SIZES, TCP, TCP_MPI, UDP, UDP_ASLEEP, UDP_MPI,
                            UDP_MPI_ASLEEP, Figures, NotMeasured, cell, half_size, kept, more_or_less, summary, summary_with_share, table)
from .rows import size_text, value_text
from .samples import times_as_good

_SMALL, _LARGE = 64, 1 << 20
_WIDTH = 110
_VERY_BUSY = 1  # processors that other programs use
_NO_FIGURES = "figures of the paper itself are not at hand."
_CLASSES = {"near": CLASS_NEAR, "far": CLASS_FAR}


def _short(sentence):
    """What a section says in one sentence."""
    return f"**{sentence}**"


def _pvm_columns(figures):
    try:
        return {"PVM, cluster-ip": figures.pvm("over"), "PVM, tcp": figures.pvm("plain")}
    except NotMeasured:
        return {}


def _by_size(figures, columns, measure, pvm):
    """`pvm` has the microseconds of a ping-pong by size; its bandwidth is that of one way."""
    def of_pvm(times, size):
        return value_text(times[size], "us") if measure == "latency" else value_text(size / times[size] * 1e6, "B/s")

    return table([{"latency": "time"}.get(measure, measure), *(column.head for column in columns), *pvm],
                 [[size_text(size), *(cell(figures.get(column, measure, size)) for column in columns), *(of_pvm(times, size) for times in pvm.values())]
                  for size in SIZES[measure]])


def _tcp_is_better(figures, measure):
    """At which sizes, with and without MPI."""
    found = []
    for with_mpi, (own, peer) in {"without MPI": (OURS, TCP), "with MPI": (OURS_MPI, TCP_MPI)}.items():
        pairs = {size: (figures.get(own, measure, size), figures.get(peer, measure, size)) for size in SIZES[measure]}
        sizes = [size_text(size) for size, pair in pairs.items() if all(pair) and times_as_good(*pair) < 1]
        found += [f"{with_mpi} at {', '.join(sizes)}"] if sizes else []
    what = {"latency": "takes less time", "bandwidth": "has a higher bandwidth"}[measure]
    return f"TCP {what} {', and '.join(found)}." if found else f"TCP {what} at no size."


def _time(figures, column, size):
    return figures.get(column, "latency", size)["median"]


def _clic(figures):
    columns, pvm = (OURS, OURS_MPI, TCP, TCP_MPI), _pvm_columns(figures)
    small = _time(figures, OURS_MPI, _SMALL) / _time(figures, TCP_MPI, _SMALL)
    large = 1 / times_as_good(figures.get(OURS_MPI, "bandwidth", _LARGE), figures.get(TCP_MPI, "bandwidth", _LARGE))
    beside = ("PVM takes its direct route, TCP between the tasks, over the plain network or over cluster-ip." if pvm
              else paper_programs.or_reason(lambda found: found.pvm("over"), figures, "PVM")[-1])
    return [_short(f"CLIC goes around TCP/IP, and so do raw frames: with MPI over them, {size_text(_SMALL)} takes {more_or_less(small)} over TCP, and "
                   f"a stream of {size_text(_LARGE)} {more_or_less(large)} over TCP."),
            *_by_size(figures, columns, "latency", pvm),
            f"{_tcp_is_better(figures, 'latency')} The column tcp is libfabric's provider; MPI over tcp is Open MPI's own. {beside}",
            *_by_size(figures, columns, "bandwidth", pvm),
            f"{_tcp_is_better(figures, 'bandwidth')}{' The figures of PVM are of its ping-pong.' if pvm else ''}",
            *paper_programs.or_reason(paper_programs.stages, figures, "The stages of a frame"),
            *paper_programs.or_reason(paper_programs.matrix, figures, "The matrix product")]


def _daemons_wait(processors):
    """What two programs that poll leave to the two daemons of cluster-ip."""
    if not 0 < processors < 4:
        return ""
    taken = {1: "the processor", 2: "both processors"}.get(processors, f"two of {processors} processors")
    return f"Both programs poll and occupy {taken}, so the daemons of cluster-ip wait for one. "


def _bcl(figures):
    share = _time(figures, ON_NODE, 8) / _time(figures, OURS, 8)
    columns, more, above, pvm = [ON_NODE, ON_NODE_MPI, OURS, OURS_MPI, TCP], [], "TCP/IP above the provider was not measured in this run", ""
    if figures.series(OVER_IP, "bandwidth"):
        columns.append(OVER_IP)
        times = _time(figures, OVER_IP, 8) / _time(figures, TCP, 8)
        above = f"TCP/IP above the provider takes {times:.1f} times the time of TCP/IP on the bare network"
        pvm = f"Each packet over cluster-ip passes through a daemon on either node. {_daemons_wait(figures.processors)}"
        columns += [OVER_IP_ASLEEP] if figures.series(OVER_IP_ASLEEP, "bandwidth") else []
    try:
        more = [paper_programs.pvm_line(figures)]
    except NotMeasured as reason:
        pvm += f"PVM was not measured in this run ({reason}). "
    return [_short(f"BCL-3 has a way of its own inside a node, and so has the provider: there, a message takes {more_or_less(share)} between nodes, and "
                   f"{above}."),
            *summary(figures, columns, more),
            f"{pvm}A message inside a node needs no call of the kernel.",
            *paper_programs.or_reason(paper_programs.jobs, figures, "70 nodes with 4 processes each")]


def _bip(figures):
    pairs = {"between nodes": (OURS, OURS_MPI), "inside a node": (ON_NODE, ON_NODE_MPI)}
    above = {place: _time(figures, mpi, 8) - _time(figures, own, 8) for place, (own, mpi) in pairs.items()}
    costs = " and ".join(f"{value_text(abs(more), 'us')} {'more' if more >= 0 else 'less'} {place}" for place, more in above.items())
    return [_short("BIP has the layers that the provider has, one between nodes, one inside them (BIP-SMP) and MPI above (MPI-BIP): with MPI, a message of 8 B "
                   f"takes {costs}."),
            *summary_with_share(figures, (OURS, OURS_MPI, ON_NODE, ON_NODE_MPI), _LARGE,
                                {OURS.head: "BIP: less than 5 us; more than 125 MB/s; half of it from 4 KB"}),
            f"Between nodes, half of the highest bandwidth needs messages of {size_text(half_size(figures.series(OURS, 'bandwidth')))}: messages smaller "
            "than a frame share frames, but each message costs some time. The maximum is the fastest stream of the kernel between nodes. Inside a node it is the fastest copy by "
            "one processor, which sender and receiver together can exceed.",
            *paper_programs.or_reason(paper_programs.pairs, figures, "Several processes on one card")]


_MPC_LAYERS, _MPC_MPI = "5 to 40 us; 490 Mbit/s (both layers)", "26 us; 450 Mbit/s"


def _mpc(figures):
    polling = "user level and polling (raw frames)"
    heads = {UDP_ASLEEP: UDP_ASLEEP.head, OURS: polling, UDP_MPI_ASLEEP: UDP_MPI_ASLEEP.head, UDP_MPI: "MPI, UDP, polling",
             OURS_MPI: "MPI, raw frames, polling"}
    rows = [[head, cell(figures.get(column, "latency", 8)), cell(figures.get(column, "bandwidth", _LARGE))] for column, head in heads.items()
            if column != UDP_MPI_ASLEEP or figures.get(column, "latency", 8)]
    share = _time(figures, OURS, 8) / _time(figures, UDP_ASLEEP, 8)
    theirs = {head: _MPC_MPI if head.startswith("MPI") else _MPC_LAYERS for head in heads.values()}
    return [_short(f"MPC2 works at user level and polls, where MPC1 needs calls and interrupts: here, 8 B by polling over raw frames takes {more_or_less(share)} "
                   "by UDP with a wait that sleeps."),
            *table(["", "8 B", "1 MB"], rows, theirs),
            "Both use the kernel to send. The wait that sleeps polls for some 20 us first, and needs a wake-up if the message comes later.",
            *paper_programs.or_reason(paper_programs.gauss, figures, "The Gauss elimination"),
            *paper_programs.or_reason(paper_programs.exchanges, figures, "Its exchanges"),
            *paper_programs.or_reason(paper_programs.control, figures, "The size of control messages")]


def _deck(figures):
    sizes = (64 << 10, _LARGE)
    rows = [[column.head, cell(figures.get(column, "latency", 64)), *(figures.share(column, size) for size in sizes)]
            for column in (OURS, UDP, TCP, OURS_MPI, TCP_MPI)]
    if all(share == "-" for share in rows[0][2:]):
        raise ValueError("no bare stream")
    return [_short(f"DECK states its bandwidth as a share of what the card can do: here, messages of {size_text(_LARGE)} reach {figures.share(OURS, _LARGE)} of "
                   f"the maximum over raw frames and {figures.share(TCP, _LARGE)} over tcp. The highest bandwidth over tcp is {figures.highest_share(TCP)} of it."),
            *table(["", "64 B", *(f"share of the maximum, {size_text(size)}" for size in sizes)], rows),
            "The maximum is the fastest stream of the kernel without any protocol above, on the same machine. The rest goes into headers, checksums, "
            "acknowledgements and copies.",
            *paper_programs.or_reason(paper_programs.mailbox, figures, "Mailboxes"),
            *paper_programs.or_reason(paper_programs.joined, figures, "Two joined clusters")]


@dataclass(frozen=True)
class Paper:
    name: str
    title: str
    theirs: str
    ours: object  # a function of the figures, to lines of Markdown


PAPERS = (
    Paper("CLIC (Granada)", "Time and bandwidth by size, with PVM and MPI and without, beside TCP; the stages of a frame; a matrix product",
          f"The abstracts (CLUSTER 2001, IPDPS 2003) have no figures; the {_NO_FIGURES}", _clic),
    Paper("BCL-3 (DAWNING-3000)", "Time and bandwidth inside a node and between nodes, and above: TCP/IP, PVM; the size of the machine",
          f"The abstract (Journal of Computer Science and Technology 16, 2001) has no figures; the {_NO_FIGURES}", _bcl),
    Paper("BIP-SMP (Lyon)", "The lowest layer and MPI, inside a node and between nodes",
          "The manual of BIP (1998) says, for Myrinet with LANai 4.1: less than 5 us, more than 125 MB/s. The abstract of \"Modeling of a high speed "
          "network to maximize throughput performance: the experience of BIP over Myrinet\" says that messages of 4 KB reach half of the highest "
          f"bandwidth. The {_NO_FIGURES.replace('paper itself', 'paper about BIP-SMP')}", _bip),
    Paper("MPI-MPC over PCI-DDC (Paris 6)", "Calls and interrupts beside user level and polling, also under a Gauss elimination",
          "The abstract (IPDPS 2001, hal-01571021) says: 5 to 40 us and 490 Mbit/s for the two lower layers, 26 us and 450 Mbit/s (56 MB/s) for MPI, "
          "on links of 1 Gbit/s.", _mpc),
    Paper("DECK-SCI (Porto Alegre)", "Time, and share of the maximum, beside peers; mailboxes; two joined clusters", f"The {_NO_FIGURES}", _deck))


def class_name(figures):
    nearest = figures["cache_line_ns"]["nearest"]
    return "near" if 0 < nearest <= SHARED_CACHE_NS else "far"


def file_of(page):
    """The figures beside a page."""
    return os.path.splitext(page)[0] + ".json"


def read(page):
    """Class of machine -> the figures of the newest run there; none before the first page."""
    if not os.path.exists(file_of(page)):
        return {}
    with open(file_of(page), encoding="utf-8") as file:
        return json.load(file)


def with_run(known, report):
    """The known runs, with this one in place of an older one on the same class of machine."""
    newest = kept(report)
    found = {**known, class_name(newest): newest}
    return {name: found[name] for name in _CLASSES if name in found}


def _line_by_line(value, depth=3):
    """JSON with a line for each result and each row."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(entry) for entry in value) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_line_by_line(entry, depth - (name != 'papers'))}" for name, entry in value.items()) + "\n}"


def write(page, runs):
    text = render(runs)  # raises before anything is written
    for path, content in ((file_of(page), _line_by_line(runs)), (page, text)):
        with open(path, "w", encoding="utf-8") as file:
            file.write(content + "\n")


def _about(report):
    others = report["machine"].get("busy_processors", 0)
    what = "figures and relations say little" if others > _VERY_BUSY else "figures are worse than they could be"
    busy = f" Other programs used {others:g} processors when the run began: {what}." if others > BUSY else ""
    short = " It was a short run (`--quick`)." if "quick" in report["settings"]["mode"] else ""
    return f"Measured on {in_words(report['machine'])}; a machine {class_of(report['cache_line_ns']['nearest'])}.{short}{busy}"


def _part(paper, report):
    try:
        return paper.ours(Figures(report))
    except (TypeError, KeyError, ValueError, StopIteration) as error:
        raise ValueError(f"the figures for {paper.name} are incomplete: run cluster-perf --papers") from error


def render(runs):
    """The page. Without all measures that a table by size needs, there is none: `ValueError`."""
    lines = ["# The papers, and what is measured here", "",
             "The provider stands on five papers about messages in clusters. This page has tables in the form of theirs. It is made by "
             "`util/cluster-perf --papers`, from the newest run on each class of machine.", ""]
    for report in runs.values():
        lines += [f"- {_about(report)}"]
    lines += [f"- There is no run on a machine {words} yet." for name, words in _CLASSES.items() if name not in runs]
    lines += ["", "The nodes are virtual, so no wire and no card take part: absolute figures of 1998 to 2003 and these do not compare, but their "
              "relations do.", "",
              f"The last column of each table has what the papers themselves, or their public abstracts, say. Where it says *{NOT_AT_HAND}*, neither the "
              "public abstract nor another source that we could read has the number; the paper may have it."]
    for paper in PAPERS:
        lines += ["", f"## {paper.name}", "", f"{paper.title}. {paper.theirs}"]
        for name, report in runs.items():
            if len(runs) > 1:
                lines += ["", f"### A machine {_CLASSES[name]} (revision {report['machine']['revision']})"]
            lines += ["", *_part(paper, report)]
    return "\n".join(_wrapped(line) for line in lines)


def _wrapped(line):
    indent = "  " if line.startswith("- ") else ""
    return line if line.startswith("|") else textwrap.fill(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
