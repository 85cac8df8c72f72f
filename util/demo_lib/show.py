"""Nodes, data check, measurements, table: the demo after the build. Called by util/demo."""
import argparse
import json
import os
import sys
import time

import jobs
import table
from jobs import temporary

_INSIDE, _BETWEEN = "inside a node", "between nodes"
_CASES_INSIDE = [(_INSIDE, "cluster"), (_INSIDE, "vader"), (_INSIDE, "tcp")]
_CASES_BETWEEN = [(_BETWEEN, "packet"), (_BETWEEN, "udp"), (_BETWEEN, "tcp")]
_EXTRA_ROUNDS = 3
_EXTRA_UNTIL_SECONDS = 200  # no further rounds in search of a good phase after this, counted from the start


def _arguments():
    parser = argparse.ArgumentParser(prog="util/demo")
    parser.add_argument("--build", required=True)
    parser.add_argument("--started", type=float, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", default="")
    return parser.parse_args()


def _progress(text):
    print(text, flush=True)


def _nodes():
    """Name of the cluster, or an empty one with the reason printed."""
    reason = temporary.unavailable_reason()
    if reason:
        _progress(f"[3/5] no nodes: {reason}; only what happens inside a node is measured, on this machine itself")
        return ""
    temporary.remove_orphans()
    name = temporary.make("demo", 2)
    _progress(f"[3/5] two virtual nodes (cluster '{name}')")
    return name


def _check_data(runner):
    _progress("[4/5] every byte of every message, two ranks on each node")
    checks = [("vader", 2, True), ("tcp", 4, False), ("udp", 4, False), ("packet", 4, False)]
    if not runner.cluster:
        checks = [("vader", 2, True), ("cluster", 4, True)]
    for transport, ranks, inside in checks:
        # Faults of Open MPI 4.1.4 itself: it sends the bytes of a repeated buffered send only once, and, without a
        # matching transport, writes behind the buffer of a large truncated message.
        skip = ["--skip", "persistent_buffered"]
        skip += ["--skip", "truncation"] if transport in ("tcp", "vader") else []
        text = runner.run(transport, ranks, inside, "mpi_check", "--rounds", "1", *skip)
        _progress(f"      {transport:<7} {text.strip().splitlines()[-1]}")


def _measure_case(runner, samples, place, transport):
    before = runner.cache_line()
    figures = runner.figures(transport, place == _INSIDE)
    samples.add(place, transport, max(before, runner.cache_line()), figures)


def _measure(runner, cases, options):
    samples = table.Samples()
    for number in range(options.rounds):
        _progress(f"[5/5] measuring, round {number + 1} of {options.rounds}: " + ", ".join(t for _, t in cases))
        for place, transport in cases:
            _measure_case(runner, samples, place, transport)
    for _ in range(_EXTRA_ROUNDS):
        open_cases = [case for case in cases if not samples.is_covered(*case)]
        if not open_cases or time.time() - options.started > _EXTRA_UNTIL_SECONDS:
            break
        _progress("      the processors moved apart; again: " + ", ".join(t for _, t in open_cases))
        for place, transport in open_cases:
            _measure_case(runner, samples, place, transport)
    return samples


def main():
    options = _arguments()
    try:
        runner = jobs.Runner(options.build, _nodes())
        cases = _CASES_INSIDE + (_CASES_BETWEEN if runner.cluster else [])
        _check_data(runner)
        samples = _measure(runner, cases, options)
    except (jobs.JobFailed, RuntimeError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; the nodes are taken down", file=sys.stderr)
        return 130
    print(f"\nOpen MPI, two ranks, on {len(os.sched_getaffinity(0))} processors. x N: so many times as good, "
          "above 1 is better.\n")
    print(table.render(samples, cases))
    print(f"\n{samples.phase_note()}\nDone after {time.time() - options.started:.0f} s; nothing is left behind.")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(samples.as_json(cases), file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
