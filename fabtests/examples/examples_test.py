#!/usr/bin/env python3
"""Runs the programs of examples/ with four processes, inside one virtual node or over two.

usage: examples_test.py node|nodes-packet|nodes-udp DIRECTORY-OF-THE-PROGRAMS
"""
import os
import sys

import processes
from processes import virtual_nodes

PROGRAMS = ("shared_page", "lock_counter", "ring", "farm", "pingpong", "pipeline", "mailbox_rules")
PROCESSES = 4
PORT = 20000

# setting -> (nodes, environment)
SETTINGS = {
    "node": (1, {}),
    "nodes-packet": (2, {"FI_CLUSTER_LINK": "packet"}),
    "nodes-udp": (2, {"FI_CLUSTER_LINK": "udp"}),
}


def main(arguments):
    if len(arguments) != 3 or arguments[1] not in SETTINGS:
        print(__doc__, file=sys.stderr)
        return 2
    nodes, environment = SETTINGS[arguments[1]]
    virtual_nodes.require()
    cluster = virtual_nodes.shared()
    failed = False
    for number, name in enumerate(PROGRAMS):
        results, said = processes.run(cluster, [os.path.join(arguments[2], name)], PROCESSES, PORT + number, nodes, environment)
        print(said, end="", flush=True)
        if results != [0] * PROCESSES:
            print(f"{name}, {arguments[1]}: FAILED: exit statuses {results} (None: killed, it did not end)")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
