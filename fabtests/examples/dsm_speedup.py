#!/usr/bin/env python3
"""How the programs of examples/dsm scale, beside the same programs by MPI, on virtual nodes.

usage: dsm_speedup.py mpi|speedup DIRECTORY-OF-THE-PROGRAMS

    mpi       are the MPI forms right? With three workers, over cluster
    speedup   the table of examples/dsm/README.md: 1, 2, 4 and 8 nodes with a process on each

For the table each point sleeps instead of computing (examples/dsm/shaped.h), in both forms. So it shows the cost of sharing,
not the speed of this machine, which has fewer processors than nodes. Both forms run in turns; the best of some runs counts.
"""
import os
import re
import subprocess
import sys

import processes
from processes import virtual_nodes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "util"))
from cluster_perf_lib import machine  # noqa: E402

PORT = 20130
SIZES = (1, 2, 4, 8)
RUNS = 5
LEAST_SPEEDUP = 1.5  # of four processes over one
SECONDS_MAX = 120
# program -> what the table says of it, options
SHAPED = {
    "sor": ("514 x 1024 points, 20 steps, 400 ns a point", ("514", "512", "20", "400")),
    "matmul": ("256 x 256, 40 us an element", ("256", "40000")),
    "lu": ("512 x 512, 80 ns an element of a step", ("512", "80")),
    "tasks": ("11 queens, 20 us a board", ("11", "20000")),
}
MPI = ("--map-by", "node", "--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster",
       "--mca", "mpi_yield_when_idle", "1")


def failed(what, said):
    print(said)
    sys.exit(f"FAIL: {what}")


def seconds_of(said, program, size):
    found = re.search(rf"^{program}: {size} processes, ([\d.]+) s", said, re.MULTILINE)
    return float(found.group(1)) if found else failed(f"{program} with {size} processes printed no time", said)


def dsm(cluster, directory, program, size, options):
    results, said = processes.run(cluster, [os.path.join(directory, program)], size, PORT + size, size, {}, *options)
    if results != [0] * size:
        failed(f"{program} with {size} processes: exit statuses {results}", said)
    return seconds_of(said, program, size)


def mpi(cluster, directory, program, size, options):
    """The queue of `tasks` has a master beside the workers, on the first node."""
    ranks = size + (program == "tasks")
    nodes = ",".join(f"node{number}" for number in range(1, size + 1))
    command = cluster.mpirun("--on", nodes, "--slots", "2", "-np", str(ranks), *MPI, os.path.join(directory, "mpi", program), *options)
    job = virtual_nodes.start(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said, _ = job.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        job.terminate()  # vcluster ends the job
        failed(f"{program} by MPI with {size} processes did not end", job.communicate()[0])
    if job.returncode != 0:
        failed(f"{program} by MPI with {size} processes: exit status {job.returncode}", said)
    return seconds_of(said, program, size)


def row(program, form, best):
    cells = [f"{best[SIZES[0]]:.2f} s"] + [f"{best[SIZES[0]] / best[size]:.2f}" for size in SIZES[1:]]
    return f"| `{program}` | {SHAPED[program][0]} | {form} | " + " | ".join(cells) + " |"


def speedup(cluster, directory):
    print("| program | shaped computing | by | " + " | ".join(f"{size}" for size in SIZES) + " |")
    print("|---|---|---|" + "---:|" * len(SIZES))
    slow = []
    for program, (_, options) in SHAPED.items():
        best = {dsm: {}, mpi: {}}
        for size in SIZES * RUNS:
            for form, times in best.items():
                times[size] = min(times.get(size, 1e9), form(cluster, directory, program, size, options))
        for name, times in (("DSM", best[dsm]), ("MPI", best[mpi])):
            print(row(program, name, times), flush=True)
            if times[1] < LEAST_SPEEDUP * times[4]:
                slow.append(f"{program} ({name})")
    print(f"\n{machine.in_words(machine.describe())}")
    for name in slow:
        print(f"FAIL: {name}: four processes are not {LEAST_SPEEDUP} times as fast as one")
    return 1 if slow else 0


def main(arguments):
    if len(arguments) != 3 or arguments[1] not in ("mpi", "speedup"):
        print(__doc__, file=sys.stderr)
        return 2
    virtual_nodes.require("mpirun")
    if arguments[1] == "speedup":
        return speedup(virtual_nodes.make(max(SIZES)), arguments[2])
    cluster = virtual_nodes.shared(3)
    for program in SHAPED:
        print(f"{program}: {mpi(cluster, arguments[2], program, 3, ()):.3f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
