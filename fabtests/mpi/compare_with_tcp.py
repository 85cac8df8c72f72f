"""Runs programs with many ranks over `cluster` and over the library's own TCP in turns, and prints both.

    compare_with_tcp.py --provider DIRECTORY --many-ranks mpi_many_ranks [--repetitions 5] [--links packet,udp] [--parts many_ranks,hpcc]

many_ranks: 8 ranks on 4 nodes, microseconds: barrier, sum of 8 bytes, all-to-all of 8 bytes a rank, 64 KiB to the next rank.
hpcc:  Debian's HPC Challenge, 4 ranks on 2 nodes, the figures in which the network takes part.
Each figure is the median of the repetitions; the ratio is to TCP, above 1 is better. Run it on a quiet machine: all nodes
share its processors.
"""
import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile

import hpcc
import run_mpi

MANY_RANKS = {f"{name}_us": -1 for name in ("barrier", "sum", "exchange", "turn")}  # -1: less is better
HPCC = {"MaxPingPongLatency_usec": -1, "RandomlyOrderedRingLatency_usec": -1, "MinPingPongBandwidth_GBytes": 1,
        "NaturallyOrderedRingBandwidth_GBytes": 1, "RandomlyOrderedRingBandwidth_GBytes": 1, "PTRANS_GBs": 1,
        "MPIRandomAccess_GUPs": 1, "MPIFFT_Gflops": 1, "HPL_Tflops": 1}


def many_ranks(options, way, cluster):
    output = job(options, way, cluster, 4, 8, [options.many_ranks, str(options.milliseconds)])
    return {label: float(value) for label, value in re.findall(r"^(\w+_us) \d+ (\S+)", output, re.MULTILINE)}


def challenge(options, way, cluster):
    with tempfile.TemporaryDirectory(prefix="hpcc-") as directory:
        hpcc.write_input(directory, 4, options.size)
        job(options, way, cluster, 2, 4, ["hpcc"], directory)
        with open(os.path.join(directory, "hpccoutf.txt"), encoding="utf-8", errors="replace") as file:
            text = file.read()
    wrong = hpcc.failures(text)
    if wrong:
        raise RuntimeError(f"hpcc over {way}: {wrong[0]}")
    return {label: float(value) for label, value in re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE) if label in HPCC}


def job(options, way, cluster, nodes, ranks, program, directory=""):
    words = ["--nodes", str(nodes), "--ranks", str(ranks), "--directory", directory]
    words += ["--path", "tcp"] if way == "tcp" else ["--provider", options.provider, "--link", way]
    status, output, _ = run_mpi.launch(run_mpi.parser().parse_args([*words, "--", *program]), cluster)
    if status:
        raise RuntimeError(f"{program[0]} over {way} ends with {status}:\n{output}")
    return output


def compare(options, title, run, figures, cluster):
    ways = [*options.links.split(","), "tcp"]
    runs = {way: [] for way in ways}
    for turn in range(options.repetitions):
        for way in ways:
            print(f"{title}: turn {turn + 1} of {options.repetitions}, {way}", file=sys.stderr, flush=True)
            runs[way].append(run(options, way, cluster))
    print(f"\n{title}\n{'':36}" + "".join(f"{way:>20}" for way in ways))
    for label, better in figures.items():
        medians = {way: statistics.median(one[label] for one in runs[way]) for way in ways}
        cells = []
        for way in ways:
            ratio = (medians[way] / medians["tcp"]) ** better
            cells.append(f"{medians[way]:12.4g}" + (f" ({ratio:4.2f})" if way != "tcp" else " " * 7))
        print(f"{label:36}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--many-ranks", required=True, help="the program mpi_many_ranks")
    made.add_argument("--repetitions", type=int, default=5, help="(default: %(default)s)")
    made.add_argument("--links", default="packet,udp", help="(default: %(default)s)")
    made.add_argument("--parts", default="many_ranks,hpcc", help="(default: %(default)s)")
    made.add_argument("--milliseconds", type=int, default=50, help="of one figure of many_ranks (default: %(default)s)")
    made.add_argument("--size", type=int, default=1000, help="order of hpcc's matrices (default: %(default)s)")
    options = made.parse_args()
    run_mpi.virtual_nodes.require()
    if "many_ranks" in options.parts.split(","):
        compare(options, "8 ranks on 4 nodes", many_ranks, MANY_RANKS, run_mpi.virtual_nodes.shared(4))
    if "hpcc" in options.parts.split(","):
        if not shutil.which("hpcc"):
            run_mpi.virtual_nodes.skip("hpcc is not installed")
        compare(options, "hpcc, 4 ranks on 2 nodes", challenge, HPCC, run_mpi.virtual_nodes.shared(2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
