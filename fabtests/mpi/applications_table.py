#!/usr/bin/env python3
"""What real programs take over `cluster`, beside Open MPI's own shared memory and TCP, in turns.

    applications_table.py --provider DIRECTORY [--program NAME]... [--forms 2x1,4x1,...] [--turns 5] [--markdown FILE]

A form is NODES x RANKS of a node. Seconds are those of the whole job, from the launcher's command to its end; processor seconds are
those of all ranks together. The rows "start alone" say how much of them a job takes that does nothing. Each cell has the median of all turns and, over `cluster`, how many times as much that is as Open MPI's own
way. Results must be those of Open MPI's own way. Exit status 1 if a job failed, or a result differs; times decide nothing.
"""
import argparse
import re
import shutil
import statistics
import sys
import tempfile
import time

import run_mpi
from applications import APPLICATIONS, installed, near

FORMS = "1x2,1x4,1x8,2x1,2x2,2x4,4x1,4x2"
OWN = "own"
# The rank's processor time, into its standard error.
_TIMED = 'TIMEFORMAT="processor %U %S"; time "$@"'


def arguments():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--program", dest="programs", action="append", choices=sorted({application.program for application in APPLICATIONS}),
                      help="may be repeated (default: all that are installed)")
    made.add_argument("--forms", default=FORMS, help="(default: %(default)s)")
    made.add_argument("--turns", type=int, default=5, help="(default: %(default)s)")
    made.add_argument("--seconds", type=int, default=180, help="end a job after so long (default: %(default)s)")
    made.add_argument("--short", action="store_true", help="small inputs: a test of this program and of the results")
    made.add_argument("--markdown", help="write the table into this file, too")
    return made.parse_args()


def ways(nodes):
    """Name -> words for run_mpi. Inside a node there is no link to choose."""
    return {**({"packet": ["--link", "packet"], "udp": ["--link", "udp"]} if nodes > 1 else {"cluster": []}), OWN: ["--path", OWN]}


def run(options, application, form, words, cluster):
    """Seconds, processor seconds, and results of one job; RuntimeError if it fails."""
    nodes, ranks = form
    with tempfile.TemporaryDirectory(prefix="application-") as directory:
        application.prepare(directory, nodes * ranks, application.short if options.short else application.usual)
        job = run_mpi.parser().parse_args(
            ["--nodes", str(nodes), "--ranks", str(nodes * ranks), "--slots", str(ranks), "--seconds", str(options.seconds), "--directory", directory,
             "--provider", options.provider, "--set", "OMP_NUM_THREADS=1", *words, "--", "bash", "-c", _TIMED, "timed",
             shutil.which(application.program), *application.words])
        began = time.monotonic()
        status, output, _ = run_mpi.launch(job, cluster)
        seconds = time.monotonic() - began
        numbers = application.numbers(directory, output)
    processor = re.findall(r"^processor (\S+) (\S+)$", output, re.MULTILINE)
    if status != 0 or len(processor) != nodes * ranks or not numbers:
        raise RuntimeError(f"status {status}, {len(processor)} ranks ended, {len(numbers)} results\n" + "\n".join(output.splitlines()[-15:]))
    return seconds, sum(float(user) + float(system) for user, system in processor), numbers


def compare(options, application, form, cluster):
    """The row of a program and form, and what went wrong."""
    made, wrong, theirs = ways(form[0]), [], None
    found = {way: [] for way in made}
    for turn in range(options.turns):
        for way in reversed(made):  # Open MPI's own first: the others' results must be as its
            print(f"{application.name}, {form[0]} nodes x {form[1]} ranks: turn {turn + 1} of {options.turns}, {way}", file=sys.stderr, flush=True)
            try:
                seconds, processor, numbers = run(options, application, form, made[way], cluster)
            except RuntimeError as reason:
                wrong.append(f"{application.name}, {form[0]}x{form[1]}, {way}: {reason}")
                continue
            found[way].append((seconds, processor))
            theirs = theirs or numbers
            if not near(application, numbers, theirs):
                wrong.append(f"{application.name}, {form[0]}x{form[1]}, {way}: results {numbers[:8]}, expected {theirs[:8]}")
    medians = {way: [statistics.median(column) for column in zip(*runs)] for way, runs in found.items() if runs}
    return [application.name, str(form[0]), str(form[0] * form[1]), *(_cell(medians, way, at) for at in (0, 1) for way in ("cluster", "packet", "udp", OWN))], wrong


def _cell(medians, way, at):
    if way not in medians:
        return ""
    ratio = f" ({medians[way][at] / medians[OWN][at]:.2f})" if way != OWN and OWN in medians and medians[OWN][at] > 0 else ""
    return f"{medians[way][at]:.2f}{ratio}"


def table(rows):
    heads = ["program", "nodes", "ranks", *(f"{way}, {what}" for what in ("s", "processor s") for way in ("shared memory", "packet", "udp", "Open MPI's own"))]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows])


def main():
    options = arguments()
    run_mpi.virtual_nodes.require("mpirun")
    forms = [tuple(int(number) for number in form.split("x")) for form in options.forms.split(",")]
    chosen = [application for application in APPLICATIONS if installed(application) and application.program in (options.programs or [application.program])]
    if not chosen:
        run_mpi.virtual_nodes.skip("no such program is installed (util/setup --for apps)")
    cluster = run_mpi.virtual_nodes.make(max(nodes for nodes, _ in forms), suffix="-applications")
    rows, wrong = [], []
    for application in chosen:
        for form in forms:
            row, more = compare(options, application, form, cluster)
            rows.append(row)
            wrong += more
    print(table(rows))
    print(*[f"FAIL: {line}" for line in wrong], f"{len(chosen)} programs, {len(wrong)} faults", sep="\n")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(table(rows) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
