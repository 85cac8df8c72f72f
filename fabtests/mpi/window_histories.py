"""Random histories of operations on windows (mpi_histories.c), judged by judge_histories.

    window_histories.py [options of run_mpi.py] -- JUDGE PROGRAM KINDS SYNCS ROUNDS SEED

JUDGE is the path of judge_histories, PROGRAM mpi_histories (its path for the system's library, its name for those from
PyPI). SEED is a number, or `commit`: made of the commit and of what else is asked for, so that every commit and every form sees
other histories. It is printed. Each rank writes its history to a file of its own: some libraries mix what ranks print.
"""
import datetime
import glob
import hashlib
import os
import subprocess
import sys
import tempfile

import run_mpi
from run_mpi import virtual_nodes

_BITS = 48  # of a seed: mpi_histories multiplies it


def seed_of_commit(words):
    """A number made of the commit, or the date outside a repository, and of these words."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=os.path.dirname(os.path.realpath(__file__)), capture_output=True,
                          text=True, check=False)
    text = " ".join([done.stdout.strip() or datetime.date.today().isoformat(), *map(str, words)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") >> (256 - _BITS)


def main():
    options = run_mpi.arguments()
    judge, *options.program, seed = options.program
    if seed == "commit":
        seed = seed_of_commit([options.mpi, options.nodes, options.ranks, options.own_memory, *options.program])
    print(f"seed {seed}", flush=True)
    options.program.append(str(seed))
    options.expect = "PASS mpi_histories"
    virtual_nodes.require("mpirun")
    run_mpi.install(options)
    with tempfile.TemporaryDirectory(prefix="window_histories-") as directory:
        options.program.append(directory)
        if run_mpi.judge(options, *run_mpi.launch(options, run_mpi.cluster_for(options))):
            return 1
        files = glob.glob(f"{directory}/*.history")
        done = subprocess.run([judge, *files], capture_output=True, text=True, check=False)
    print(done.stdout[-6000:], end="")
    return 1 if done.returncode or len(files) != options.ranks else 0


if __name__ == "__main__":
    sys.exit(main())
