#!/usr/bin/env python3
"""What mailboxes cost, and whether many threads get their messages: on one node, and between two by either link.

usage: mailbox_table.py [--repetitions N] [--workers N] DIRECTORY-OF-THE-PROGRAMS

A ping-pong by size, through mailboxes and without, in turns: the medians of the repetitions. Then a farm of four processes, whose
result is known, with so many threads in each that far more wait than there are processors.
"""
import argparse
import os
import re
import statistics
import sys
import time

import processes
from processes import virtual_nodes

PORT = 20200
FARMERS = 4
# setting -> (nodes, environment)
SETTINGS = {
    "node": (1, {}),
    "packet": (2, {"FI_CLUSTER_LINK": "packet"}),
    "udp": (2, {"FI_CLUSTER_LINK": "udp"}),
}


def program(options, cluster, setting, name, size, *words):
    nodes, environment = SETTINGS[setting]
    options.port += 1
    results, said = processes.run(cluster, [os.path.join(options.directory, name)], size, options.port, nodes, environment, *words)
    if results != [0] * size:
        print(said)
        sys.exit(f"FAIL: {name}, {setting}: exit statuses {results} (None: it did not end)")
    return said


def pingpong(options, cluster):
    found = {setting: {} for setting in SETTINGS}
    for _ in range(options.repetitions):
        for setting, sizes in found.items():
            for size, *times in re.findall(r"(\d+) bytes: mailbox +([\d.]+) us, fi_tsend +([\d.]+) us", program(options, cluster, setting, "pingpong", 2)):
                sizes.setdefault(int(size), []).append([float(each) for each in times])
    print("| one way | " + " | ".join(f"{setting}: mailbox | `fi_tsend`" for setting in SETTINGS) + " |\n|---:|" + "---:|" * 2 * len(SETTINGS))
    for size in found["node"]:
        cells = [statistics.median(column) for sizes in found.values() for column in zip(*sizes[size])]
        print(f"| {size} B | " + " | ".join(f"{cell:.2f} us" for cell in cells) + " |", flush=True)


def farm(options, cluster):
    for setting in SETTINGS:
        begun = time.monotonic()
        said = program(options, cluster, setting, "farm", FARMERS, str(options.workers))
        print(f"{setting}: {said.splitlines()[-1]}, {time.monotonic() - begun:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="of the ping-pong (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=50, help="threads of a process of the farm (default: %(default)s)")
    parser.add_argument("directory")
    options = parser.parse_args()
    options.port = PORT
    virtual_nodes.require()
    cluster = virtual_nodes.shared(2)
    pingpong(options, cluster)
    farm(options, cluster)
    print("mailboxes: all messages came as they were sent")
    return 0


if __name__ == "__main__":
    sys.exit(main())
