#!/usr/bin/env python3
"""What the size of a job costs: jobs of many nodes and ranks over `cluster` and over the library's own TCP, in turns.

    jobs.py --provider DIRECTORY --program mpi_scale [--library openmpi4] [--cache DIRECTORY] [--forms 24x1,64x1]
            [--ways cluster,tcp] [--turns 2] [--rounds 5] [--few] [--most COLUMN=NUMBER]

A form is NODES x RANKS of a node. If a job fails or does not end, the others still run, and its row has the figures that it had
printed. A way whose job does not end gets no further turn of this form. Exit status 1 if a job over `cluster` failed. The limits are
those of the system: 1,024 descriptors a process, 1,024 entries in the kernel's table of hardware addresses. Start-up is from the
launcher's command to the last rank out of MPI_Init. Times are microseconds; of the turns the least disturbed counts, which is the
shortest. Memory, descriptors and sockets are those of the largest rank, and its memory includes its receive rings. Retransmitted
frames, and frames that found a receive ring full, are those of all ranks.
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
           "alltoall_4096_us": "4 KB", "barrier_us": "barrier", "allreduce_8_us": "allreduce 8 B", "kilobytes": "KB",
           "ring_kilobytes": "of rings", "descriptors": "descriptors", "sockets": "sockets", "warnings": "warnings", "frames_sent": "frames",
           "frames_retransmitted": "retransmitted", "link_ring_full": "ring full"}
COUNTERS = ("endpoints", "frames_sent", "frames_retransmitted", "link_ring_full")


def arguments():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--program", required=True, help="mpi_scale as built for the system's Open MPI; for a library from PyPI its name alone")
    made.add_argument("--library", dest="libraries", action="append", choices=sorted(run_mpi.LIBRARIES), help="may be repeated (default: openmpi4)")
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
    warnings = [re.sub(r"\b(peer|endpoint) \S+", r"\1 ...", text) for text in re.findall(r"libfabric:.*<warn> *(.*)", output)]
    for text in sorted(set(warnings)):
        print(f"   {warnings.count(text)} times: {text}", flush=True)
    return len(warnings)


def figures_of(output, began):
    """What the program has printed so far, by name."""
    figures = {}
    started = re.search(r"^started (\S+)", output, re.MULTILINE)
    if started:
        figures["start"] = float(started[1]) - began
    for name, first, median in re.findall(r"^(\w+_us) (\d+) (\d+)$", output, re.MULTILINE):
        figures[f"{name} first"], figures[name] = float(first), float(median)
    for name, _, most in re.findall(r"^(kilobytes|ring_kilobytes|descriptors|sockets) (\d+) (\d+)$", output, re.MULTILINE):
        figures[name] = float(most)
    return figures


def run(options, library, way, form, cluster):
    """The figures of one job by name; why it failed, or nothing; and whether it had to be ended."""
    nodes, ranks = form
    words = ["--library", library, "--nodes", str(nodes), "--ranks", str(nodes * ranks), "--slots", str(ranks), "--path", way, "--provider",
             options.provider, "--seconds", str(options.seconds)]
    if options.cache:
        words += ["--cache", options.cache]
    job = run_mpi.parser().parse_args([*words, "--", options.program, str(options.rounds), *(["few"] if options.few else [])])
    began = time.time()
    status, output, sums = run_mpi.launch(job, cluster)
    figures = figures_of(output, began)
    figures["warnings"] = tell_warnings(output)
    if way == "cluster":
        figures |= {name: sums.get(name, 0) for name in COUNTERS}
    if status != 0 or "PASS mpi_scale" not in output:
        said = [line for line in output.splitlines() if not line.startswith("libfabric:")]
        return figures, f"status {status}: " + "; ".join(said[-12:]), time.time() - began >= options.seconds
    if way == "cluster" and sums["endpoints"] < nodes * ranks:
        return figures, f"{sums['endpoints']} endpoints, {nodes * ranks} ranks", False
    return figures, "", False


def excess(options, figures):
    limits = dict(limit.split("=") for limit in options.most)
    return [f"{name} {figures[name]:g} > {most}" for name, most in limits.items() if figures[name] > float(most)]


class Way:
    """All turns of one way with one library and form."""

    def __init__(self, name):
        self.name, self.best, self.failures, self.ended = name, {}, [], False

    def turn(self, options, library, form, cluster):
        figures, failure, self.ended = run(options, library, self.name, form, cluster)
        wrong = [failure] if failure else excess(options, figures) if self.name == "cluster" else []
        print(*[f"   FAIL {line}" for line in wrong], f"   {figures}", sep="\n", flush=True)
        self.failures += wrong
        if not failure or not self.best:
            self.best = {name: min(value, self.best.get(name, value)) for name, value in figures.items()}

    def row(self):
        return [f"{self.best[name]:.1f}" if name == "start" and name in self.best else f"{self.best[name]:.0f}" if name in self.best else "-"
                for name in COLUMNS]


def run_form(options, text, libraries, ways):
    """The rows of a form, and how many jobs over `cluster` failed."""
    form = tuple(int(number) for number in text.split("x"))
    cluster = run_mpi.virtual_nodes.make(form[0], suffix=f"-{text}")
    rows, failed = [], 0
    for library in libraries:
        made = [Way(name) for name in ways]
        for turn in range(options.turns):
            for way in (way for way in made if not way.ended):
                print(f"== {text} {library} {way.name}, turn {turn + 1}, load {os.getloadavg()[0]:.1f}", flush=True)
                way.turn(options, library, form, cluster)
        rows += [[text, library, way.name, *way.row()] for way in made]
        failed += sum(len(way.failures) for way in made if way.name == "cluster")
    cluster.down()
    return rows, failed


def print_table(rows):
    print("\n| form | library | way | " + " | ".join(COLUMNS.values()) + " |\n|" + "---|" * (3 + len(COLUMNS)))
    print(*("| " + " | ".join(row) + " |" for row in rows), sep="\n", flush=True)


def main():
    options = arguments()
    run_mpi.virtual_nodes.require("mpirun")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, DESCRIPTORS_MAX), hard))
    failed, rows = 0, []
    for text in options.forms.split(","):
        try:
            more, wrong = run_form(options, text, options.libraries or ["openmpi4"], options.ways.split(","))
        except RuntimeError as reason:
            print(f"   FAIL no virtual nodes for {text}: {reason}", flush=True)
            more, wrong = [], 1
        rows, failed = rows + more, failed + wrong
        print_table(rows)
    print(f"{failed} failures over cluster")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
