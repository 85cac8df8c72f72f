"""The cable that README lets its reader cut: a job that runs then ends well, as it does without the cut.

Options are those of run_mpi.py; the program is the path of mpi_check.
"""
import os
import re
import subprocess
import sys

import run_mpi
from run_mpi import virtual_nodes

_README = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "README.md")
_SUITES = ("point", "match", "collective")


def advised():
    """The words after `vcluster exec switch`."""
    with open(_README, encoding="utf-8") as file:
        return re.search(r"vcluster exec switch (ip link set n\d+r\d+ down)", file.read()).group(1).split()


def main(arguments):
    options = run_mpi.parser().parse_args(arguments)
    options.program += ["--rounds", "1", "--verbose", *(word for suite in _SUITES for word in ("--only", suite))]
    virtual_nodes.require("mpirun")
    cluster = virtual_nodes.make(options.nodes, "--rails", "2", suffix="-cable")
    words, program = run_mpi.command(options)
    job = subprocess.Popen(["timeout", "--kill-after=20", str(options.seconds), *cluster.mpirun(*words, *program)], text=True,
                           env=run_mpi.environment(options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    begun = job.stdout.readline()
    cluster.run("switch", *advised())
    output = begun + job.stdout.read()
    print(output)
    passed = job.wait() == 0 and "PASS mpi_check" in output
    print(f"{'ok' if passed else 'FAIL'}: {' '.join(advised())} while the job ran: status {job.returncode}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
