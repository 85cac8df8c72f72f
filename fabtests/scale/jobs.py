#!/usr/bin/env python3
"""What the size of a job costs: jobs of many nodes and ranks over `cluster` and over the library's own TCP, in turns.

    jobs.py --provider DIRECTORY --program mpi_scale [--library openmpi4] [--cache DIRECTORY] [--forms 24x1,64x1]
            [--ways cluster,tcp] [--turns 2] [--rounds 5] [--few] [--most COLUMN=NUMBER]

A form is NODES x RANKS of a node. A job that fails or does not end is said and the others still run; exit status 1 then. The
limits are those of the system: 1,024 descriptors a process, 1,024 entries in the kernel's table of hardware addresses. Start-up
is from the launcher's command to the last rank out of MPI_Init. Times are microseconds; of the turns the least disturbed counts,
which is the shortest. Memory, descriptors and sockets are those of the largest rank.
"""
import argparse
import os
import re
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "mpi"))
import run_mpi  # noqa: E402

FORMS = "24x1,64x1,100x1,200x1,16x16,2x64,2x192"
DESCRIPTORS_MAX = 1024
COLUMNS = {"start": "start-up s", "alltoall_8_us first": "first all-to-all 8 B", "alltoall_8_us": "8 B", "alltoall_4096_us first": "first 4 KB",
           "alltoall_4096_us": "4 KB", "barrier_us": "barrier", "allreduce_8_us": "allreduce 8 B", "kilobytes": "KB", "descriptors":
           "descriptors", "sockets": "sockets", "warnings": "warnings", "endpoints": "endpoints"}


def arguments():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--program", required=True, help="mpi_scale as built for the system's Open MPI; for a library from PyPI its name alone")
    made.add_argument("--library", action="append", choices=sorted(run_mpi.LIBRARIES), help="may be repeated (default: openmpi4)")
    made.add_argument("--cache", default="", help="for libraries from PyPI")
    made.add_argument("--forms", default=FORMS, help="(default: %(default)s)")
    made.add_argument("--ways", default="cluster,tcp", help="(default: %(default)s)")
    made.add_argument("--turns", type=int, default=2, help="of each job (default: %(default)s)")
    made.add_argument("--rounds", type=int, default=5, help="of an all-to-all; of the others more (default: %(default)s)")
    made.add_argument("--few", action="store_true", help="no all-to-all: no rank meets all others")
    made.add_argument("--seconds", type=int, default=400, help="end a job after so long (default: %(default)s)")
    made.add_argument("--most", action="append", default=[], metavar="COLUMN=NUMBER", help="fail if this figure over cluster is larger")
    return made.parse_args()


def tell_warnings(output):
    """How many warnings there are; prints each kind once."""
    warnings = [re.sub(r"peer \S+", "peer ...", text) for text in re.findall(r"libfabric:.*<warn> *(.*)", output)]
    for text in sorted(set(warnings)):
        print(f"   {warnings.count(text)} times: {text}", flush=True)
    return len(warnings)


def run(options, library, way, form, cluster):
    """The figures of one job by name."""
    nodes, ranks = form
    words = ["--library", library, "--nodes", str(nodes), "--ranks", str(nodes * ranks), "--slots", str(ranks), "--path", way, "--provider",
             options.provider, "--seconds", str(options.seconds)]
    if options.cache:
        words += ["--cache", options.cache]
    job = run_mpi.parser().parse_args([*words, "--", options.program, str(options.rounds), *(["few"] if options.few else [])])
    began = time.time()
    status, output, sums = run_mpi.launch(job, cluster)
    if status != 0 or "PASS mpi_scale" not in output:
        tell_warnings(output)
        said = [line for line in output.splitlines() if not line.startswith("libfabric:")]
        raise RuntimeError(f"status {status}: " + "; ".join(said[-12:]))
    figures = {"start": float(re.search(r"^started (\S+)", output, re.MULTILINE)[1]) - began}
    for name, first, median in re.findall(r"^(\w+_us) (\d+) (\d+)", output, re.MULTILINE):
        figures[f"{name} first"], figures[name] = float(first), float(median)
    for name, _, most in re.findall(r"^(kilobytes|descriptors|sockets) (\d+) (\d+)", output, re.MULTILINE):
        figures[name] = float(most)
    figures["warnings"], figures["endpoints"] = tell_warnings(output), sums["endpoints"]
    if way == "cluster" and sums["endpoints"] < nodes * ranks:
        raise RuntimeError(f"{sums['endpoints']} endpoints, {nodes * ranks} ranks")
    return figures


def excess(options, figures):
    limits = dict(limit.split("=") for limit in options.most)
    return [f"{name} {figures[name]:g} > {most}" for name, most in limits.items() if figures[name] > float(most)]


def main():
    options = arguments()
    run_mpi.virtual_nodes.require("mpirun")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, DESCRIPTORS_MAX), hard))
    ways = options.ways.split(",")
    libraries = options.library or ["openmpi4"]
    failed, rows = 0, []
    for text in options.forms.split(","):
        form = tuple(int(number) for number in text.split("x"))
        cluster = run_mpi.virtual_nodes.make(form[0], suffix=f"-{text}")
        for library in libraries:
            best = {way: {} for way in ways}
            for turn in range(options.turns):
                for way in ways:
                    print(f"== {text} {library} {way}, turn {turn + 1}, load {os.getloadavg()[0]:.1f}", flush=True)
                    try:
                        figures = run(options, library, way, form, cluster)
                        wrong = excess(options, figures) if way == "cluster" else []
                    except RuntimeError as failure:
                        figures, wrong = {}, [str(failure)]
                    failed += len(wrong)
                    print(*[f"   FAIL {line}" for line in wrong], f"   {figures}", sep="\n", flush=True)
                    best[way] = {name: min(value, best[way].get(name, value)) for name, value in figures.items()} or best[way]
            rows += [[text, library, way, *(f"{best[way].get(name, -1):.1f}" if name == "start" else f"{best[way].get(name, -1):.0f}"
                                            for name in COLUMNS)] for way in ways]
        cluster.down()
    print("\n| form | library | way | " + " | ".join(COLUMNS.values()) + " |\n|" + "---|" * (3 + len(COLUMNS)))
    print(*("| " + " | ".join(row) + " |" for row in rows), sep="\n")
    print(f"{failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
