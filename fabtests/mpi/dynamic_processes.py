"""Runs mpi_dynamic under the launcher of Open MPI 5, and separates the launcher's known failures from the provider's.

Options are those of run_mpi.py. When two daemons of that launcher connect processes (MPI_Comm_accept, less often
MPI_Comm_spawn) they misread each other's answers: "PMIX ERROR: ... pmix_server_dyn.c". Then a daemon crashes, or the call
returns `Unreachable` or never returns; over TCP (--path tcp) as well, nine times out of ten (open-mpi/ompi issues 12601
and 13521).

A failed run is the launcher's if it printed that error, no rank found wrong data, and
  - a daemon was lost; or
  - ranks were connected and each of them finished its messages; or
  - no rank was connected, and the same job over TCP, without the provider, fails with the same error.
The job is run up to three times. The test fails at the first failure that is not the launcher's, except that one run may
fail where the job over TCP passes; it is skipped when no run passed.
"""
import copy
import re
import sys

import run_mpi
from run_mpi import virtual_nodes

_LAUNCHER_ERROR = r"PMIX ERROR: \S+ in file \S*/pmix_server_dyn\.c"
_DAEMON_LOST = "PRTE has lost communication with a remote daemon"
_TRIES = 3
_UNEXPLAINED_MAX = 1
_SECONDS = 80  # of one run; the program ends itself after 60


def passed(status, output):
    return status == 0 and "PASS mpi_dynamic" in output


def launcher_reported(output):
    return bool(re.search(_LAUNCHER_ERROR, output)) and "FAIL dynamic" not in output


def connected_ranks(output):
    """How many ranks were connected, and how many of them finished."""
    return tuple(len(re.findall(rf"^{word}$", output, re.MULTILINE)) for word in ("connected", "talked"))


def is_launcher_failure(output, fails_over_tcp):
    """Whether a failed run is the launcher's fault; None if that cannot be decided, because TCP happens to work."""
    if not launcher_reported(output):
        return False
    connected, finished = connected_ranks(output)
    if _DAEMON_LOST in output or 0 < connected == finished:
        return True
    if connected:
        return False
    return True if fails_over_tcp() else None


def main():
    options = run_mpi.arguments()
    options.seconds = _SECONDS
    virtual_nodes.require("mpirun")
    run_mpi.install(options)
    cluster = run_mpi.cluster_for(options)

    def fails_over_tcp():
        control = copy.copy(options)
        control.path, control.link = "tcp", ""
        status, output, _ = run_mpi.launch(control, cluster)
        return not passed(status, output) and launcher_reported(output)

    unexplained = 0
    for _ in range(_TRIES):
        status, output, sums = run_mpi.launch(options, cluster)
        if passed(status, output):
            return run_mpi.judge(options, status, output, sums)
        verdict = is_launcher_failure(output, fails_over_tcp)
        unexplained += verdict is None
        if verdict is False or unexplained > _UNEXPLAINED_MAX:
            return run_mpi.judge(options, status or 1, output, sums)
        print(f"{output}\nthe launcher failed (status {status})\n")
    return virtual_nodes.skip(f"Open MPI's launcher failed {_TRIES} times")


if __name__ == "__main__":
    sys.exit(main())
