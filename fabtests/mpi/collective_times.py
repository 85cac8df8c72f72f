#!/usr/bin/env python3
"""Collectives of MPI over the library's own TCP, over `cluster`, and with libcluster-coll in front, in turns.

    collective_times.py --provider DIRECTORY --program mpi_collective_times [--library openmpi4] [--cache DIRECTORY]
                        [--nodes 8] [--rate 1gbit] [--buffer 64k] [--repetitions 3] [--application matmul:400 ...]

One rank a node, each port of the virtual switch and of the nodes shaped to --rate with a queue of --buffer. Each figure is
the median of the repetitions in microseconds; the ratio is to TCP, above 1 is better. Rows named _processor are processor time of a
rank, which is alone on its node. `wire` is what no broadcast can be faster than: its bytes once over one port, in frames of 1500
bytes with a header of 32 of the provider's own; and the ratio that TCP has to that. Run it on a quiet machine. An
application is matmul, gauss or gauss_rows of apps/, beside the program, with its order; its figure is the time of one product
or solution.
"""
import argparse
import os
import re
import statistics
import sys

import run_mpi

WAYS = {"tcp": ["--path", "tcp"], "cluster": [], "cluster, coll": ["--coll"], "tcp, coll": ["--path", "tcp", "--coll"]}


_FRAME, _AROUND = 1500, 38  # bytes of an IP packet; on the wire around it: preamble, Ethernet header, checksum and gap
_HEADERS = 20 + 8 + 32  # IP, UDP and the provider's
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def wire_us(label, rate):
    """How long the bytes of a broadcast take at this rate; none for other measures."""
    named = re.fullmatch(r"bcast_(\d+)_us", label)
    if not named:
        return None
    size = int(named.group(1))
    frames = -(-size // (_FRAME - _HEADERS))
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", rate).groups()
    return (size + frames * (_HEADERS + _AROUND)) * 8e6 / (float(number) * _UNITS[unit])


def times(options, way, cluster):
    figures = run(options, way, cluster, [options.program, str(options.rounds)], r"^(\w+_us) \d+ (\S+)")
    for application in options.application:
        name, order = application.split(":")
        program = os.path.join(os.path.dirname(options.program), name)
        for _, seconds in run(options, way, cluster, [program, order], r"^(\w+) order .* seconds (\S+)").items():
            figures[f"{name}_{order}_us"] = seconds * 1e6
    return figures


def run(options, way, cluster, command, figure):
    words = ["--set", "CLUSTER_COLL=report", "--library", options.mpi, "--provider", options.provider,
             "--nodes", str(options.nodes), "--ranks", str(options.nodes), *WAYS[way]]
    if options.cache:
        words += ["--cache", options.cache]
    job = run_mpi.parser().parse_args([*words, "--", *command])
    status, output, _ = run_mpi.launch(job, cluster)
    if status or (job.coll and run_mpi.left_to_mpi(job, output)):
        raise RuntimeError(f"{way} ends with {status}:\n{output}")
    return {label: float(value) for label, value in re.findall(figure, output, re.MULTILINE)}


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--program", required=True, help="mpi_collective_times, for a library from PyPI its name alone")
    made.add_argument("--library", dest="mpi", default="openmpi4", choices=sorted(run_mpi.LIBRARIES), help="(default: %(default)s)")
    made.add_argument("--cache", default="", help="for libraries from PyPI")
    made.add_argument("--nodes", type=int, default=8, help="(default: %(default)s)")
    made.add_argument("--rate", default="1gbit", help="of every port (default: %(default)s)")
    made.add_argument("--buffer", default="64k", help="of every port (default: %(default)s)")
    made.add_argument("--repetitions", type=int, default=3, help="(default: %(default)s)")
    made.add_argument("--rounds", type=int, default=20, help="of a broadcast; of the others more (default: %(default)s)")
    made.add_argument("--application", action="append", default=[], metavar="NAME:ORDER", help="matmul, gauss or gauss_rows; may be repeated")
    made.add_argument("--ways", default="tcp;cluster;cluster, coll", help=f"of {'; '.join(WAYS)} (default: %(default)s)")
    options = made.parse_args()
    run_mpi.virtual_nodes.require("mpirun")
    cluster = run_mpi.virtual_nodes.make(options.nodes)
    cluster.faults("--rate", options.rate, "--buffer", options.buffer)
    ways = [way.strip() for way in options.ways.split(";")]
    runs = {way: [] for way in ways}
    for turn in range(options.repetitions):
        for way in ways:
            print(f"turn {turn + 1} of {options.repetitions}: {way}", file=sys.stderr, flush=True)
            runs[way].append(times(options, way, cluster))
    print(f"{options.mpi}, {options.nodes} nodes at {options.rate}" + "".join(f"{way:>22}" for way in ways) + f"{'wire':>22}")
    for label in runs[ways[0]][0]:
        medians = {way: statistics.median(run[label] for run in runs[way]) for way in ways}
        least = wire_us(label, options.rate)
        figures = [medians[way] for way in ways] + ([least] if least else [])
        print(f"{label:28}" + "".join(f"{figure:13.0f} ({medians[ways[0]] / figure:5.2f})" for figure in figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
