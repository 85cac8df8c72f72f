#!/usr/bin/env python3
"""Runs the programs of examples/ with four processes, inside one virtual node or over two.

usage: examples_test.py node|nodes-packet|nodes-udp DIRECTORY-OF-THE-PROGRAMS
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import virtual_nodes  # noqa: E402

PROGRAMS = ("shared_page", "lock_counter", "ring")
PROCESSES = 4
PORT = 20000
SECONDS_MAX = 120  # for one program

# setting -> (nodes, environment)
SETTINGS = {
    "node": (1, {}),
    "nodes-packet": (2, {"FI_CLUSTER_LINK": "packet"}),
    "nodes-udp": (2, {"FI_CLUSTER_LINK": "udp"}),
}


def run(cluster, program, nodes, environment, port):
    """The exit statuses of all processes; one that does not end is killed, and has None."""
    where = f"{cluster.address(1)}:{port}"
    children = [virtual_nodes.start(cluster.command(1 + rank % nodes, program, str(rank), str(PROCESSES), where), environment)
                for rank in range(PROCESSES)]
    limit = time.monotonic() + SECONDS_MAX
    results = []
    for child in children:
        # Rank 0 ends when all others have come to its last barrier. After a failure the others are not waited for long.
        failed = any(result != 0 for result in results)
        try:
            results.append(child.wait(timeout=1 if failed else max(limit - time.monotonic(), 1)))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            results.append(None)
    return results


def main(arguments):
    if len(arguments) != 3 or arguments[1] not in SETTINGS:
        print(__doc__, file=sys.stderr)
        return 2
    nodes, environment = SETTINGS[arguments[1]]
    virtual_nodes.require()
    cluster = virtual_nodes.shared()
    failed = False
    for number, name in enumerate(PROGRAMS):
        results = run(cluster, os.path.join(arguments[2], name), nodes, environment, PORT + number)
        if results != [0] * PROCESSES:
            print(f"{name}, {arguments[1]}: FAILED: exit statuses {results} (None: killed, it did not end)")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
