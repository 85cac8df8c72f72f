"""Options, the sequence of steps, and messages."""
import argparse
import json
import os
import subprocess
import sys

from cluster_lib import build, system_errors

from . import choices, machine, markdown, paper_figures, paper_measures, papers, placement, plan, report, runs, samples, schedule, table, thresholds, transports
from .errors import PerfError

_SMOKE_TRANSPORTS = ["cluster", "tcp", "bare"]  # one of each kind, present wherever libfabric is
# The peers that can be the best: rxd and TCP over cluster-ip are far slower and would take most of the time.
_README_TRANSPORTS = [name for name in transports.names() if name not in ("rxd", "cluster/safe", "tcp/cluster-ip")]
_PLACES = (transports.INSIDE, transports.BETWEEN)

_EPILOG = """\
examples:
  cluster-perf --quick                            the figures that matter, in less than three minutes
  cluster-perf --readme --markdown table.md       what the README draws: five minutes
  cluster-perf --json all.json --plots pictures   everything, with pictures: about half an hour
  cluster-perf --measures latency --peers cluster,shm,ucx --places inside
  cluster-perf --quick --agents --peers cluster   what agents (clusterd) cost the provider
  cluster-perf --quick --keys --peers cluster,tcp what a key costs: authenticated, encrypted
  cluster-perf --quick --devices verbs0,verbs1    verbs: beside libfabric's verbs and UCX
  cluster-perf --libfabric 2.3=/opt/libfabric/lib also the providers of another libfabric
  cluster-perf --choices send,look                why frames go between nodes as they do
  cluster-perf --thresholds                       up to which size messages should leave eagerly here
  cluster-perf --papers docs/papers.md            tables in the form of five papers: a quarter of an hour
  cluster-perf --papers page.md --quick           the same in less than ten minutes
  cluster-perf --from all.json --plots pictures   the table and the pictures again, nothing is measured

Run it on a machine that does nothing else, as root (virtual nodes need it). Debian packages of peers:
openmpi-bin, ucx-utils; of pictures: python3-matplotlib."""


class _Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')


def _words(text):
    return [word for word in text.split(",") if word]


def _library(text):
    label, equals, directory = text.partition("=")
    if not equals or not label or not os.path.exists(os.path.join(directory, "libfabric.so.1")):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=DIRECTORY with a libfabric.so.1 in it")
    return label, os.path.realpath(directory)


def _parser():
    parser = _Parser(prog="cluster-perf", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=_EPILOG,
                     description="Measures `cluster` beside its peers: the same work over each, interleaved, repeated, on the "
                                 "same two processors; inside a node and between two virtual nodes.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {build.version()}")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", action="store_true", help="only the figures that matter, in less than three minutes")
    mode.add_argument("--readme", action="store_true",
                      help="the figures for the picture in the README, repeatedly, for about five minutes")
    mode.add_argument("--smoke", action="store_true",
                      help="a few seconds, to show that everything works; the figures mean nothing, but the report is checked to be complete and plausible")
    mode.add_argument("--choices", type=_words, nargs="?", const=[], metavar="LIST",
                      help="instead of transports, compare ways to send and receive frames between nodes, in tables in Markdown: "
                           f"{', '.join(question.name for question in choices.QUESTIONS)} (default: all)")
    mode.add_argument("--thresholds", action="store_true",
                      help="find up to which size messages should leave eagerly on this machine, and print the settings for it")
    mode.add_argument("--from", dest="source", metavar="FILE", help="measure nothing, show what --json wrote")
    mode.add_argument("--list", action="store_true", help="list the transports and measures, and end")
    parser.add_argument("--json", metavar="FILE", help="write all figures for programs")
    parser.add_argument("--markdown", metavar="FILE",
                        help="write a table in Markdown that names revision, machine, kernel and date")
    parser.add_argument("--papers", metavar="FILE",
                        help="measure what the papers that the provider stands on measured, and write a page in Markdown with tables in their form; "
                             "it keeps the newest run on either class of machine, in FILE with the ending .json; with --quick less of it")
    parser.add_argument("--plots", metavar="DIRECTORY", help="results to keep: pictures (SVG and PNG; needs python3-matplotlib), the table, and the "
                             "figures without the single samples")
    parser.add_argument("--peers", type=_words, metavar="LIST",
                        help=f"only these transports: {', '.join(transports.names())} (default: all but cluster/safe, "
                             "tcp/cluster-ip, and rxd with --readme; those over verbs only with --devices)")
    parser.add_argument("--devices", type=_words, metavar="IFACE,IFACE",
                        help="measure between the RDMA devices of these two interfaces of this machine, and nowhere else")
    parser.add_argument("--measures", type=_words, metavar="LIST", help="only these measures, such as latency,put")
    parser.add_argument("--places", type=_words, metavar="LIST", default=list(_PLACES),
                        help="inside, between (default: both)")
    parser.add_argument("--agents", action="store_true",
                        help="measure `cluster` on the virtual nodes twice in each turn: without agents (clusterd), then while agents run")
    parser.add_argument("--keys", action="store_true",
                        help="measure `cluster` three times in each turn: without a key, with authenticated and with encrypted frames")
    parser.add_argument("--libfabric", type=_library, metavar="NAME=DIRECTORY", action="append", default=[],
                        help="measure the providers of that libfabric, too; can be given several times")
    parser.add_argument("--repetitions", type=int, metavar="N",
                        help="number of times that everything runs (default: 5, with --quick 2, with --readme 9)")
    parser.add_argument("--milliseconds", type=float, metavar="T",
                        help="length of one measurement (default: 60, with --quick 20)")
    parser.add_argument("--mtu", type=int, default=1500, metavar="BYTES", help="MTU between the nodes (default: %(default)s)")
    parser.add_argument("--rails", type=int, default=1, metavar="R", help="rails between the nodes (default: %(default)s)")
    parser.add_argument("--rate", default="", metavar="RATE", help="shape the ports of the nodes, such as 1gbit")
    parser.add_argument("--crowd", type=int, default=transports.CROWD_RANKS, metavar="RANKS",
                        help="ranks in the MPI jobs with more ranks than processors (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=90, metavar="SECONDS",
                        help="stop a run that takes longer (default: %(default)s)")
    parser.add_argument("--build", metavar="DIRECTORY", default=build.DEFAULT,
                        help=f"where the provider and the programs are (default: {build.DEFAULT_IN_WORDS})")
    return parser


def _say(text):
    print(text, flush=True)


def _list_all():
    _say("transports (* only when named by --peers):")
    for name in transports.names():
        known = transports.of_name(name)
        where = " and ".join(dict.fromkeys(place for transport in known for place in transport.places))
        _say(f"  {name:<20} {where}{' devices' if known[0].device else ''}{'' if known[0].unasked else ' *'}")
    _say("measures:")
    for measure, needs in plan.measures().items():
        _say(f"  {measure:<20} {needs}")


def _check(options):
    choices.chosen(options.choices or [])
    if options.choices is not None and (options.peers or options.measures or options.places != list(_PLACES)):
        raise PerfError("--choices measures between nodes, without transports: leave out --peers, --measures and --places")
    for name in ("agents", "keys"):
        if getattr(options, name) and options.choices is not None:
            raise PerfError(f"--{name} measures the provider, --choices does not: leave out one of them")
    if options.papers and (_mode(options) not in ("papers", "papers-quick") or options.peers or options.measures or options.places != list(_PLACES)
                           or options.agents or options.keys or options.libfabric or (options.mtu, options.rails, options.rate) != (1500, 1, "")):
        raise PerfError("--papers measures what the papers did: of what chooses measures or the network, only --quick goes with it")
    if options.choices is not None and options.markdown:
        raise PerfError("--choices prints Markdown as it is: leave out --markdown")
    if options.devices and (len(options.devices) != 2 or _mode(options) not in ("full", "quick") or options.agents
                            or transports.BETWEEN not in options.places or (options.mtu, options.rails, options.rate) != (1500, 1, "")):
        raise PerfError("--devices takes two interfaces and measures between them: it goes with --quick, --peers, --measures, --keys, --libfabric, "
                        "--repetitions and --milliseconds")
    if options.thresholds and (options.peers or options.measures or options.agents or options.keys or options.libfabric or options.markdown
                               or options.plots):
        raise PerfError("--thresholds measures the provider alone, and prints Markdown: of what chooses measures, only --places goes with it")
    for place in options.places:
        if place not in _PLACES:
            raise PerfError(f"--places: '{place}' is neither inside nor between")
    known = transports.names()
    for name in options.peers or []:
        if name.partition("@")[0] not in known:
            raise PerfError(f"--peers: '{name}' is unknown; there are {', '.join(known)}")
    measures = plan.measures()
    for name in options.measures or []:
        if name not in measures:
            raise PerfError(f"--measures: '{name}' is unknown; there are {', '.join(sorted(measures))}")
    if options.crowd not in range(2, 129, 2):
        raise PerfError(f"--crowd {options.crowd}: allowed are even numbers from 2 to 128, half of them for each node")
    for name in ("repetitions", "milliseconds"):
        value = getattr(options, name)
        if value is not None and not 0 < value <= 10000:
            raise PerfError(f"--{name} {value:g}: allowed is more than 0, up to 10000")


def _plan(options):
    chosen = {"smoke": plan.smoke, "quick": plan.quick, "readme": plan.readme, "papers": plan.papers,
              "papers-quick": plan.papers_quick}.get(_mode(options), plan.full)()
    chosen.repetitions = options.repetitions or chosen.repetitions
    chosen.milliseconds = options.milliseconds or chosen.milliseconds
    return plan.with_only(chosen, options.measures) if options.measures else chosen


def _warn_if_busy(about):
    if about["busy_processors"] > machine.BUSY:
        _say(f"warning: other programs use {about['busy_processors']:g} processors: figures will be worse than they could be, and spread")


def _measure(options):
    of_papers, with_mpi = paper_measures.targets() if options.papers and not build.installed else ([], [])
    build.ensure("cluster-perf", ["cluster-fi", "fabric_perf", "bare_perf", *of_papers], options.build, "perf", with_mpi=["mpi_perf", *with_mpi])
    runner = runs.Runner(os.path.realpath(options.build), 0, options.limit)
    chosen = _plan(options)
    runner.milliseconds = chosen.milliseconds
    runner.crowd = options.crowd
    about = machine.describe()
    if not options.smoke:
        _warn_if_busy(about)
    asked_places = options.places if options.choices is None else [transports.BETWEEN]
    where = ([placement.Devices(options.devices)] if options.devices
             else placement.make(asked_places, options.mtu, options.rails, options.rate, _say))
    if options.agents and not where[0].cluster:
        raise PerfError("--agents needs virtual nodes: run it as root")
    collected = samples.Samples()
    extra = schedule.EXTRA_ROUNDS if options.choices is None else 0  # ways are compared in the phase of most runs
    schedule.Schedule(runner, _turns(options, chosen, where), chosen.repetitions, extra, collected, _say).run()
    settings = {"mode": _mode(options), "places": [place.name for place in where], "mtu": options.mtu,
                "rails": options.rails, "devices": options.devices or [], "agents": options.agents, "keys": options.keys, "rate": options.rate, "crowd": options.crowd, "repetitions": chosen.repetitions,
                "milliseconds": chosen.milliseconds}
    made = report.make(about, settings, collected)
    if options.papers:
        form = paper_measures.QUICK if options.quick else paper_measures.FULL
        made["papers"] = paper_measures.Measures(runner, form, _say).all()
    return made


def _turns(options, chosen, where):
    if options.choices is not None:
        return choices.turns(choices.chosen(options.choices), where[0])
    if options.thresholds:
        return thresholds.turns(where)
    if options.papers:
        return [turn for turn in schedule.make_turns(chosen, where, transports.names(), [])
                if paper_figures.is_asked(turn[0].name, turn[1], turn[2].wait)]
    asked = options.peers or {"smoke": _SMOKE_TRANSPORTS, "readme": _README_TRANSPORTS}.get(_mode(options))
    turns = schedule.make_turns(chosen, where, asked, options.libfabric)
    if options.keys:
        turns = list(schedule.beside_keys(turns))
    return list(schedule.beside_agents(turns)) if options.agents else turns


def _mode(options):
    if options.choices is not None:
        return "choices"
    mode = next((mode for mode in ("smoke", "quick", "readme", "thresholds") if getattr(options, mode)), "full")
    return {"full": "papers", "quick": "papers-quick"}.get(mode, mode) if options.papers else mode


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise PerfError(f"--from {path}: {error}") from error


def _text(figures):
    show = {"choices": choices, "thresholds": thresholds}.get(figures["settings"]["mode"], table)
    devices = figures["settings"].get("devices")
    where = f"between the RDMA devices of {devices[0]} and {devices[1]}, which are both on this machine\n" if devices else ""
    return machine.in_words(figures["machine"]) + "\n" + where + show.render(figures)


def _plot(figures, directory):
    """Draws the plots with whichever Python has matplotlib: Debian's package serves Debian's Python only."""
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "plots.py")
    source = os.path.join(directory, "report.json")
    os.makedirs(directory, exist_ok=True)
    report.write(report.condensed(figures), source)
    with open(os.path.join(directory, "table.txt"), "w", encoding="utf-8") as file:
        file.write(_text(figures) + "\n")
    interpreter = _python_with_matplotlib()
    if interpreter is None:
        try:
            build.packages("perf")
            interpreter = _python_with_matplotlib()
        except build.BuildError as error:
            raise PerfError(f"pictures need matplotlib: {error}; the figures are in {source}: draw them later with --from") from error
    drawn = subprocess.run([interpreter, "-B", script, source, directory], capture_output=True, text=True, check=False)
    if drawn.returncode != 0:
        raise PerfError(f"the pictures could not be drawn: {drawn.stderr.strip().splitlines()[-1]}")
    _say(f"pictures: {len(drawn.stdout.splitlines())} files in {directory}")


def _python_with_matplotlib():
    """Finds a Python with matplotlib: Debian's package serves Debian's Python only, which may be another one."""
    for interpreter in dict.fromkeys((sys.executable, "/usr/bin/python3")):
        if subprocess.run([interpreter, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
            return interpreter
    return None


def _write_markdown(figures, path):
    if figures["settings"]["mode"] in ("choices", "thresholds"):
        raise PerfError(f"--markdown: these are {figures['settings']['mode']}, which are printed as Markdown: leave it out")
    with open(path, "w", encoding="utf-8") as file:
        file.write(markdown.render(figures) + "\n")


def _write_papers(figures, page):
    try:
        papers.write(page, papers.with_run(papers.read(page), figures))
    except ValueError as error:
        raise PerfError(f"--papers: {error}") from error


def _show(options):
    figures = _read(options.source) if options.source else _measure(options)
    _say("\n" + _text(figures))
    if options.json:
        report.write(figures, options.json)
    if options.markdown:
        _write_markdown(figures, options.markdown)
    if options.papers:
        _write_papers(figures, options.papers)
    faults = [] if options.source else report.faults(figures)
    for fault in faults:
        print(f"cluster-perf: the report is not sound: {fault}", file=sys.stderr)
    if options.plots:
        _plot(figures, options.plots)
    return 1 if faults else 0


def main(arguments):
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            _list_all()
            return 0
        _check(options)
        return _show(options)
    except (PerfError, build.BuildError) as error:
        print(f"cluster-perf: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cluster-perf: {system_errors.in_words(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster-perf: interrupted; the nodes are taken down", file=sys.stderr)
        return 130
