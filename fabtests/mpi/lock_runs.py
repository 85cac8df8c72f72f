"""An MCS lock over MPI windows (mpi_lock.c), many runs in a row, over this provider and TCP in turns.

    lock_runs.py --provider DIRECTORY [--library NAME]... [--runs N] [--modes WORDS] [--nodes N]... [--paths WORDS]

Each mode, library, path and number of nodes has a row: runs that passed, that stood still, that failed otherwise, and the
median of the microseconds per acquire; the table is printed after every tenth run of each and at the end. A flushed lock
must never stand still; the unflushed one lacks a flush that MPI demands, and may stand still over any path. Exit status 1
if a run of the flushed lock over `cluster` stood still, if the unflushed one did so more often over `cluster` than over
`tcp` and `rxm` (by more than twice the deviation of such counts), or if a run over `cluster` failed. `tcp` is libfabric's
own provider of reliable datagrams over TCP for MPICH and Intel MPI and Open MPI's btl tcp; `rxm`, MPICH alone, is `tcp;ofi_rxm`.

MPICH over `tcp` loses turns of the flushed lock unless nothing is injected there (half of the runs did; none of 12 without):
MPI_Put is fi_inject_write, and the counter that MPI_Win_flush waits for counts that when it has left, not when it is there. So
nothing is injected in its flushed runs, and they are a correct program to compare with.
"""
import argparse
import math
import re
import statistics
import sys
from pathlib import Path

import run_mpi
from run_mpi import virtual_nodes

_LIBRARIES = ("mpich", "openmpi5", "intel")


def arguments():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    options.add_argument("--cache", type=Path, default=Path("build/cores"), help="for libraries from PyPI")
    options.add_argument("--library", dest="mpi", action="append", default=[], help="(default: " + ", ".join(_LIBRARIES) + ")")
    options.add_argument("--runs", type=int, default=1, help="of each row (default: %(default)s)")
    options.add_argument("--modes", default="flushed", help="(default: %(default)s)")
    options.add_argument("--nodes", type=int, action="append", default=[], help="(default: 1 and 2)")
    options.add_argument("--paths", default="cluster,tcp", help="(default: %(default)s)")
    options.add_argument("--ranks", type=int, default=4, help="(default: %(default)s)")
    options.add_argument("--rounds", type=int, default=100, help="of each rank in a run (default: %(default)s)")
    options.add_argument("--still", type=int, default=30, help="seconds without a turn (default: %(default)s)")
    return options.parse_args()


class Row:
    def __init__(self, options, mode, library, path, nodes):
        self.mode, self.mpi, self.path, self.nodes = mode, library, path, nodes
        self.passed, self.still, self.failed, self.times = 0, 0, 0, []
        no_inject = ["--set", "FI_TCP_MAX_INJECT=0"] if (mode, library, path) == ("flushed", "mpich", "tcp") else []
        words = [*no_inject, "--library", library, "--path", path, "--nodes", str(nodes), "--ranks", str(options.ranks),
                 "--cache", str(options.cache), "--provider", options.provider]
        self.options = run_mpi.parser().parse_args(
            [*words, "--", "mpi_lock", mode, str(options.rounds), str(options.still)])

    def run(self, cluster):
        self.options.program = list(self.options.program)
        status, output, _ = run_mpi.launch(self.options, cluster)
        time = re.search(r"acquire_us \d+ ([0-9.]+)", output)
        if time:
            self.times.append(float(time.group(1)))
        if status == 0 and time and "PASS mpi_lock" in output:
            self.passed += 1
        elif "STANDS STILL" in output:
            self.still += 1
        else:
            self.failed += 1
            print(f"{self.mode} {self.mpi} {self.path} nodes {self.nodes}:", output[-2000:], flush=True)

    def __str__(self):
        time = f"{statistics.median(self.times):9.1f}" if self.times else "        -"
        return f"{self.mode:9} {self.mpi:9} {self.path:8} {self.nodes:5} {self.passed:7} {self.still:6} {self.failed:7} {time}"


def print_table(options, rows, runs):
    print(f"{runs} runs, {options.ranks} ranks, {options.rounds} turns each")
    print("mode      library   path     nodes  passed  still  failed  us/acquire")
    for row in rows:
        print(row)
    sys.stdout.flush()


def wrong(rows):
    """Rows that break what is demanded of this provider."""
    unflushed = {(row.mpi, row.nodes, row.path): row.still for row in rows if row.mode == "unflushed"}
    for row in rows:
        others = [unflushed[key] for key in ((row.mpi, row.nodes, path) for path in ("tcp", "rxm")) if key in unflushed]
        often = others and row.still > max(others) + 2 * math.sqrt(row.still + max(others))
        if row.path == "cluster" and (row.failed or (row.still and (row.mode == "flushed" or often))):
            yield row


def main():
    options = arguments()
    virtual_nodes.require("mpirun")
    rows = [Row(options, mode, library, path, nodes) for mode in options.modes.split(",")
            for library in options.mpi or _LIBRARIES for nodes in options.nodes or (1, 2) for path in options.paths.split(",")]
    for row in rows:
        run_mpi.install(row.options)
    cluster = virtual_nodes.shared(max(row.nodes for row in rows))
    for run in range(1, options.runs + 1):
        for row in rows:
            row.run(cluster)
        if run % 10 == 0 or run == options.runs:
            print_table(options, rows, run)
    found = list(wrong(rows))
    for row in found:
        print(f"FAIL: {row}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
