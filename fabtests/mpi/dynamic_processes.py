"""Runs mpi_dynamic under the launcher of Open MPI 5, which fails by itself, and tells its failures from ours.

Options are those of run_mpi.py. Two daemons of that launcher that are to connect processes (MPI_Comm_accept, and less
often MPI_Comm_spawn) misread each other's answers: "PMIX ERROR: ... pmix_server_dyn.c". Then the daemon of the second node
ends with a segmentation fault, or the call fails with `Unreachable`, or never returns; over TCP (--path tcp) as well, nine
times out of ten (open-mpi/ompi issues 12601 and 13521). A run is the launcher's failure if it said so, and either lost
a daemon or every rank that got its connection had done with its messages; then it is tried again. If no run gets through,
the test is skipped.
"""
import re
import sys

import run_mpi
from run_mpi import nodes

_LAUNCHER = r"PMIX ERROR: \S+ in file \S*/pmix_server_dyn\.c"
_DAEMON_LOST = "PRTE has lost communication with a remote daemon"  # whatever its ranks were doing
_TRIES = 3
_SECONDS = 80  # of one run; the program gives up after 60


def is_launcher_failure(status, output):
    connected, talked = (len(re.findall(rf"^{word}$", output, re.MULTILINE)) for word in ("connected", "talked"))
    wrong = status != 0 or "PASS mpi_dynamic" not in output
    outside = connected == talked or _DAEMON_LOST in output
    return wrong and outside and "FAIL dynamic" not in output and re.search(_LAUNCHER, output)


def main():
    options = run_mpi.arguments()
    options.seconds = _SECONDS
    nodes.prepare()
    run_mpi.install(options)
    for attempt in range(_TRIES):
        name = nodes.make(options.nodes, suffix=f"-{attempt}")
        status, output, sums = run_mpi.launch(options, name)
        if not is_launcher_failure(status, output):
            return run_mpi.judge(options, status, output, sums)
        print(output)
        print(f"the launcher failed ({status})\n")
    return nodes.skip(f"Open MPI's launcher failed {_TRIES} times")


if __name__ == "__main__":
    sys.exit(main())
