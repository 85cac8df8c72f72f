"""An MCS lock over MPI windows (mpi_lock.c), many runs in a row, over this provider and TCP in turns.

    lock_runs.py --provider DIRECTORY [--library NAME]... [--runs N] [--mode flushed|unflushed] [--nodes N]... [--paths WORDS]

Each library, path and number of nodes has a row: runs that passed, that stood still, that failed otherwise, and the median
of the microseconds per acquire. A flushed lock must never stand still; the unflushed one lacks a flush that MPI demands, and
may stand still over any path. Exit status 1 if a run of the flushed lock over `cluster` did not pass, or any run failed.
"""
import argparse
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
    options.add_argument("--mode", default="flushed", choices=("flushed", "unflushed"), help="(default: %(default)s)")
    options.add_argument("--nodes", type=int, action="append", default=[], help="(default: 1 and 2)")
    options.add_argument("--paths", default="cluster,tcp", help="(default: %(default)s)")
    options.add_argument("--ranks", type=int, default=4, help="(default: %(default)s)")
    options.add_argument("--rounds", type=int, default=100, help="of each rank in a run (default: %(default)s)")
    options.add_argument("--still", type=int, default=30, help="seconds without a turn (default: %(default)s)")
    return options.parse_args()


class Row:
    def __init__(self, options, library, path, nodes):
        self.mpi, self.path, self.nodes = library, path, nodes
        self.passed, self.still, self.failed, self.times = 0, 0, 0, []
        words = ["--library", library, "--path", path, "--nodes", str(nodes), "--ranks", str(options.ranks),
                 "--cache", str(options.cache), "--provider", options.provider]
        self.options = run_mpi.parser().parse_args(
            [*words, "--", "mpi_lock", options.mode, str(options.rounds), str(options.still)])

    def run(self, cluster):
        self.options.program = list(self.options.program)
        status, output, _ = run_mpi.launch(self.options, cluster)
        time = re.search(r"acquire_us \d+ ([0-9.]+)", output)
        if status == 0 and time and "PASS mpi_lock" in output:
            self.passed += 1
            self.times.append(float(time.group(1)))
        elif "STANDS STILL" in output:
            self.still += 1
        else:
            self.failed += 1
            print(output[-2000:], flush=True)

    def __str__(self):
        time = f"{statistics.median(self.times):9.1f}" if self.times else "        -"
        return f"{self.mpi:9} {self.path:8} {self.nodes:5} {self.passed:7} {self.still:6} {self.failed:7} {time}"


def main():
    options = arguments()
    virtual_nodes.require("mpirun")
    rows = [Row(options, library, path, nodes) for library in options.mpi or _LIBRARIES
            for nodes in options.nodes or (1, 2) for path in options.paths.split(",")]
    for row in rows:
        run_mpi.install(row.options)
    cluster = virtual_nodes.shared(max(row.nodes for row in rows))
    for _ in range(options.runs):
        for row in rows:
            row.run(cluster)
    print(f"{options.mode}: {options.ranks} ranks, {options.rounds} turns each")
    print("library   path     nodes  passed  still  failed  us/acquire")
    for row in rows:
        print(row)
    must = [row for row in rows if row.path == "cluster" and options.mode == "flushed"]
    return 1 if any(row.still for row in must) or any(row.failed for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
