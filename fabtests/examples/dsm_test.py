#!/usr/bin/env python3
"""The programs of examples/dsm, and one of what they leave out: right on four virtual nodes and inside one; the latter also over
memory in which everything posted is done as late as may be. With --table, how they scale.

usage: dsm_test.py [--table] DIRECTORY-OF-THE-PROGRAMS

For the table each point sleeps instead of computing (dsm_shaped_compute). So it shows the cost of sharing, not the
speed of this machine, which has fewer processors than nodes.
"""
import os
import re
import sys

import processes
from processes import virtual_nodes

PROGRAMS = ("sor", "matmul", "tasks", "dsm_sharing")
LATE = "dsm_late"  # dsm_sharing on late_endpoint.c
PORT = 20100
SIZES = (1, 2, 4, 8)  # processes of the table, on a node each
# program -> what the table says of it, options
SHAPED = {
    "sor": ("514 x 1024 points, 20 steps, 400 ns a point", ("514", "512", "20", "400")),
    "matmul": ("256 x 256, 40 us an element", ("256", "40000")),
    "tasks": ("11 queens, 20 us a board", ("11", "20000")),
}


def check(cluster, directory):
    failed = False
    runs = [(LATE, 1)] + [(program, nodes) for program in PROGRAMS for nodes in (1, 4)]
    for number, (program, nodes) in enumerate(runs):
        results, said = processes.run(cluster, [os.path.join(directory, program)], 4, PORT + number, nodes, {})
        print(said, end="", flush=True)
        if results != [0] * 4 or ": 4 processes" not in said:
            print(f"{program} on {nodes} node(s): FAILED: exit statuses {results} (None: killed, it did not end)")
            failed = True
    return 1 if failed else 0


def seconds(cluster, directory, program, size, port):
    results, said = processes.run(cluster, [os.path.join(directory, program)], size, port, size, {}, *SHAPED[program][1])
    if results != [0] * size:
        sys.exit(f"{program} with {size} processes: exit statuses {results}")
    return float(re.search(r"processes, ([\d.]+) s", said).group(1))


def table(cluster, directory):
    print("| program | shaped computing | " + " | ".join(f"{size}" for size in SIZES) + " |")
    print("|---|---|" + "---:|" * len(SIZES))
    for number, program in enumerate(SHAPED):
        taken = [seconds(cluster, directory, program, size, PORT + 10 * number + size) for size in SIZES]
        cells = [f"{taken[0]:.2f} s"] + [f"{taken[0] / each:.2f}" for each in taken[1:]]
        print(f"| `{program}` | {SHAPED[program][0]} | " + " | ".join(cells) + " |", flush=True)
    return 0


def main(arguments):
    if len(arguments) not in (2, 3) or (len(arguments) == 3 and arguments[1] != "--table"):
        print(__doc__, file=sys.stderr)
        return 2
    virtual_nodes.require()
    if len(arguments) == 3:
        return table(virtual_nodes.make(max(SIZES)), arguments[2])
    return check(virtual_nodes.shared(4), arguments[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
