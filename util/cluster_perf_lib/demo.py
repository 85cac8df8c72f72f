"""Compares Open MPI over `cluster` with Open MPI's own transports, between two virtual nodes and inside one, without
hardware. It installs and builds what is missing, checks data, measures, prints a table and a verdict, and removes
everything again.

Without root it can install nothing and make no node: then it measures only inside a node.
"""
import argparse
import os
import sys
import time

from cluster_lib import build

from . import machine, placement, plan, report, runs, samples, schedule, table, transports, verdict
from .errors import PerfError, Skipped

_PLACES = (transports.INSIDE, transports.BETWEEN)
_TRANSPORTS = ("mpi:cluster", "mpi:vader", "mpi:tcp")
# Open MPI 4.1.4 fails these tests of mpi_check by itself: it sends the bytes of a repeated buffered send only once, and
# without a matching transport it writes behind the buffer of a large truncated message.
_FAIL_ANYWHERE, _FAIL_WITHOUT_MATCHING = ("persistent_buffered",), ("truncation",)
# By default it uses one-sided operations that its transport lacks, and fails.
_CHECK_OPTIONS = ("--mca", "osc", "pt2pt,sm", "--mca", "mpi_yield_when_idle", "1")
_CHECK_SECONDS = 300  # an idle machine needs less than 30


def _arguments(words):
    parser = argparse.ArgumentParser(prog="demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"%(prog)s {build.version()}")
    parser.add_argument("--rounds", type=int, choices=range(1, 100), default=3, metavar="N",
                        help="measure everything N times, in turn, and take medians (default: %(default)s)")
    parser.add_argument("--milliseconds", type=float, default=80, metavar="T",
                        help="length of one measurement (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON, as cluster-perf does")
    parser.add_argument("--build", metavar="DIRECTORY", default=build.DEFAULT, help="(default: build/release, built if missing)")
    return parser.parse_args(words)


def _say(text):
    print(text, flush=True)


def _check_data(runner, place, transport):
    """mpi_check, two ranks on each node."""
    ranks = 4 if place.name == transports.BETWEEN else 2
    skipped = _FAIL_ANYWHERE + (() if transport.is_ours else _FAIL_WITHOUT_MATCHING)
    program = build.path("mpi_check", runner.build)
    try:
        output = runner.mpirun(place, transport, ["-np", str(ranks), "--timeout", str(_CHECK_SECONDS), *_CHECK_OPTIONS], _CHECK_SECONDS,
                               [program, "--rounds", "1", *(word for test in skipped for word in ("--skip", test))])
    except Skipped as error:
        raise PerfError(f"mpi_check, {place.name}, {transport.name}: {error}") from error
    _say(f"      {place.name}, {transport.name}: {output[-1] if output else 'nothing'}")
    if not any(line.startswith("PASS mpi_check") for line in output):
        raise PerfError(f"mpi_check, {place.name}, {transport.name}: did not pass")


def _run(options):
    started = time.monotonic()
    others = machine.busy_processors()
    if others > machine.BUSY:
        _say(f"warning: other programs use {others:.1f} processors: all takes longer, and the figures will be worse than they could be")
    _say("[1/4] packages and build")
    build.ensure("demo", ["cluster-fi", "mpi_check", "bare_perf", "mpi_perf", "cluster-info"], options.build)
    runner = runs.Runner(os.path.realpath(options.build), options.milliseconds, _CHECK_SECONDS)
    _say("[2/4] virtual nodes")
    places = placement.make(_PLACES, 1500, 1, "", _say, kind="demo")
    turns = schedule.make_turns(plan.demo(), places, _TRANSPORTS, [])
    _say("[3/4] every byte of every message of mpi_check")
    for place, transport, _ in turns:
        _check_data(runner, place, transport)
    _say("[4/4] measurements")
    collected = samples.Samples()
    schedule.Schedule(runner, turns, options.rounds, schedule.EXTRA_ROUNDS, collected, _say).run()
    settings = {"mode": "demo", "places": [place.name for place in places], "repetitions": options.rounds,
                "milliseconds": options.milliseconds}
    figures = report.make(machine.describe(), settings, collected)
    _say(f"\n{machine.in_words(figures['machine'])}\n{table.render(figures)}\n\n{verdict.render(figures)}\n\nDone after {time.monotonic() - started:.0f} s.")
    if options.json:
        report.write(figures, options.json)
    return 1 if collected.skipped else 0


def main(words):
    options = _arguments(words)
    try:
        return _run(options)
    except (PerfError, Skipped, build.BuildError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; the nodes are removed", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
