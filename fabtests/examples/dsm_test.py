#!/usr/bin/env python3
"""The programs of examples/dsm, and one of what they leave out: right on four virtual nodes and inside one; the latter also over
memory in which everything posted is done as late as may be. One more program is ended by one of its processes.

usage: dsm_test.py DIRECTORY-OF-THE-PROGRAMS

How they scale: dsm_speedup.py.
"""
import os
import sys
import tempfile

import processes
from processes import virtual_nodes

PROGRAMS = ("sor", "matmul", "lu", "tasks", "dsm_sharing")
LATE = "dsm_late"  # dsm_sharing on late_endpoint.c
ENDS = "dsm_ends"
PORT = 20100


def check(cluster, directory):
    failed = False
    runs = [(LATE, 1)] + [(program, nodes) for program in PROGRAMS for nodes in (1, 4)]
    for number, (program, nodes) in enumerate(runs):
        results, said = processes.run(cluster, [os.path.join(directory, program)], 4, PORT + number, nodes, {})
        print(said, end="", flush=True)
        if results != [0] * 4 or ": 4 processes" not in said:
            print(f"{program} on {nodes} node(s): FAILED: exit statuses {results} (None: killed, it did not end)")
            failed = True
    return failed


def check_the_end(cluster, directory):
    """All processes end with 1, and the one that caused it says why."""
    with tempfile.TemporaryFile("w+") as errors:
        results, _ = processes.run(cluster, [os.path.join(directory, ENDS)], 4, PORT + 20, 4, {}, stderr=errors)
        errors.seek(0)
        said = errors.read()
    right = results == [1] * 4 and "process 1: it ends here, said process 1 of 4\n" in said
    print(f"{ENDS}: ended" if right else f"{ENDS}: FAILED: exit statuses {results}, {said!r}")
    return not right


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    virtual_nodes.require()
    cluster = virtual_nodes.shared(4)
    failed = [check(cluster, arguments[1]), check_the_end(cluster, arguments[1])]
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
