"""Random histories of operations on windows (mpi_histories.c), judged by judge_histories.

    window_histories.py [options of run_mpi.py] -- JUDGE PROGRAM KINDS SYNCS ROUNDS SEED

JUDGE is the path of judge_histories, PROGRAM mpi_histories (its path for the system's library, its name for those from
PyPI). Each rank writes its history to a file of its own: some libraries mix what ranks print.
"""
import glob
import subprocess
import sys
import tempfile

import run_mpi
from run_mpi import virtual_nodes


def main():
    options = run_mpi.arguments()
    judge, *options.program = options.program
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
