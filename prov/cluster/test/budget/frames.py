#!/usr/bin/env python3
"""Counts what a 64-byte message or an 8-byte write alone in its frame costs both sides, over each link, beside the kernel's
work, and holds it to the budget.

usage: frames.py [--budget FILE] [--functions N] [--times [--rounds N] [--sizes N,N]] PROGRAM

Both ends belong to one thread, in two virtual nodes. The budget is the table in docs/budget.md; growth by more than 2 %
fails. With --times nothing is counted: a table says where the time of messages of several sizes goes. Exit status 77: the counting tool is missing, or no virtual nodes can be made.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../../../../fabtests"))
import callgrind  # noqa: E402
import virtual_nodes  # noqa: E402

MESSAGES = 2000
SLACK = 0.02
SKIPPED = 77
SECONDS_MAX = 200
RUNS_MAX = 6
LINKS = ("packet", "udp")
SIZES = (64, 1024, 4096, 16384, 65536)
# the functions of the program that repeat the steps
EXCHANGES, LOOKS = ("budget_frame_exchanges", "budget_frame_puts_answered", "budget_frame_puts_alone"), ("budget_frame_looks",)
# what the table calls it -> the function of the program that does it
LOOK_ROW, LOOK = "a look at the network, nothing there", "cluster::network::NetworkTransport::receive_short"
CALLS_ROW, CALLS = "system calls of such a look", r"system calls a look: (\d+\.\d+)"
STEPS = {
    "fi_tsend, frame leaves": "budget_frame_send",
    "fi_cq_read, frame arrives": "budget_frame_arrived",
    "fi_write, frame leaves with an answer": "budget_frame_write",
    "fi_cq_read, answer and write arrive": "budget_frame_written",
    "fi_write, frame leaves": "budget_frame_write_alone",
    "fi_cq_read, write arrives, answer leaves": "budget_frame_take_write",
    "fi_cq_read, answer arrives": "budget_frame_complete",
}

# what the table calls it -> what the program prints about messages of SUPER_BYTES, sent at full speed
SUPER_BYTES = 4096
SUPER_STEPS = {"4 KB, calls that send": r"calls that send: (\d+\.\d+)", "4 KB, arrivals": r"datagrams: (\d+\.\d+)"}
FRACTIONS = (CALLS_ROW, *SUPER_STEPS)
ROWS = (*STEPS, LOOK_ROW, *FRACTIONS)


def environment_of(link):
    # Two ends on one node would use shared memory.
    return {**os.environ, "FI_CLUSTER_LINK": link, "FI_CLUSTER_SHM": "no"}


def times(program, rounds, sizes):
    """Prints a table in Markdown: of the medians that a round has of its messages, the medians of the rounds. The two ends run one after
    the other on one processor."""
    nodes = virtual_nodes.shared(2)
    print("| microseconds | to send | of which kernel | to arrive | of which kernel |\n|---|---:|---:|---:|---:|")
    runs = {(link, size): [] for link in LINKS for size in sizes}
    for _ in range(rounds):
        for (link, size), found in runs.items():
            output = run(nodes, link, program, size)
            found.append([float(figure) for figure in re.findall(r"\d+\.\d+", output.partition("microseconds:")[2])])
    for (link, size), found in runs.items():
        print(f"| {link}, {size} B | " + " | ".join(f"{statistics.median(figures):.2f}" for figures in zip(*found)) + " |")


def run(nodes, link, program, size):
    """Runs the program at full speed, both ends on one processor; returns what it prints."""
    command = ["taskset", "-c", "0", program, nodes.namespace(1), nodes.namespace(2), str(MESSAGES), str(size)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=True, env=environment_of(link)).stdout


def count(nodes, link, program, parts):
    """Runs the program under the counting tool; returns the profile of some functions of it, and what it prints."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "profile")
        command = ["valgrind", "--tool=callgrind", *(f"--toggle-collect={part}*" for part in parts), f"--callgrind-out-file={out}",
                   program, nodes.namespace(1), nodes.namespace(2), str(MESSAGES)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False,
                                env=environment_of(link))
        if result.returncode != 0 or not os.path.exists(out):
            raise RuntimeError(f"{' '.join(command)}\nended with status {result.returncode}:\n{result.stderr}")
        with open(out, encoding="utf-8") as file:
            return callgrind.Profile(file), result.stdout


def instructions(profile, function):
    """Per message, write or look, of a step with all that it calls."""
    found = [costs["Ir"] for name, costs in profile.inclusive.items() if re.match(rf"{function}\b", name)]
    if not found:
        raise RuntimeError(f"the profile knows no function {function}")
    return sum(found) / MESSAGES


def measure(program, functions):
    """(table row, link) -> instructions a message."""
    measured = {}
    nodes = virtual_nodes.shared(2)
    for link in LINKS:
        profile, _ = count(nodes, link, program, EXCHANGES)
        for name, costs in sorted(profile.own.items(), key=lambda entry: -entry[1].get("Ir", 0))[:functions]:
            print(f"{link:<8} {costs.get('Ir', 0) / MESSAGES:8.1f} {name.split('(')[0]}")
        for row, function in STEPS.items():
            measured[row, link] = instructions(profile, function)
        # Other parts of a read are no measure, because a slow turn makes each read look at the network again.
        profile, output = count(nodes, link, program, LOOKS)
        measured[LOOK_ROW, link] = instructions(profile, LOOK)
        measured[CALLS_ROW, link] = float(re.search(CALLS, output).group(1))
        output = run(nodes, link, program, SUPER_BYTES)
        for row, pattern in SUPER_STEPS.items():
            measured[row, link] = float(re.search(pattern, output).group(1))
        for row in ROWS:
            print(f"{link:<8} {row:<42} {measured[row, link]:.{2 if row in FRACTIONS else 1}f}")
    return measured


def allowed(row, budget):
    """Half an instruction, or a hundredth of a system call, is what rounding in the table can hide."""
    return budget * (1 + SLACK) + (0.01 if row in FRACTIONS else 0.5)


def budget_of(path):
    """The rows of the table: | step | packet | udp |."""
    budget = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0] in ROWS and len(cells) == len(LINKS) + 1:
                budget.update({(cells[0], link): float(cell) for link, cell in zip(LINKS, cells[1:])})
    missing = [row for row in ROWS if (row, LINKS[0]) not in budget]
    if missing:
        raise RuntimeError(f"{path}: no budget for {', '.join(missing)}")
    return budget


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="", help="the document with the table; without it figures are only printed")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="show the N dearest functions of each link")
    parser.add_argument("--times", action="store_true", help="print where the time goes, and count nothing")
    parser.add_argument("--rounds", type=int, default=5, help="of each figure of the table of times (default: %(default)s)")
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=SIZES, help="bytes of the messages there")
    parser.add_argument("program", help="budget_frames")
    options = parser.parse_args()
    if options.times:
        virtual_nodes.require("taskset")
        times(options.program, options.rounds, options.sizes)
        return 0
    if shutil.which("valgrind") is None:
        print("needs valgrind (Debian: valgrind): not run")
        return SKIPPED
    virtual_nodes.require("taskset")
    measured = measure(options.program, options.functions)
    if not options.budget:
        return 0
    budget = budget_of(options.budget)
    for _ in range(RUNS_MAX - 1):
        if all(cost <= allowed(step[0], budget[step]) for step, cost in measured.items()):
            break
        print("over the budget: counted once more, since other programs cost turns")
        measured = {step: min(cost, measured[step]) for step, cost in measure(options.program, 0).items()}
    grown = [step for step, cost in measured.items() if cost > allowed(step[0], budget[step])]
    for row, link in grown:
        print(f"FAIL: {link}: {row}: {measured[row, link]:.2f}, the budget is {budget[row, link]:g}")
    for (row, link), cost in measured.items():
        if cost < budget[row, link] * (1 - SLACK) and row not in FRACTIONS:
            print(f"note: {link}: {row}: fewer than the budgeted {budget[row, link]:g}: lower the table in docs/budget.md")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
