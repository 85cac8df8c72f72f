#!/usr/bin/env python3
"""Counts what a frame of a pulled message costs at its sender and at its receiver, and holds it to the budget.

usage: bulk.py [--budget FILE] [--functions N] PROGRAM

What no book-keeping can save is taken off: copies, checksums, and the program's link, which stands for the kernel. The
budget is the table in docs/budget.md; growth by more than 2 % fails. Exit status 77: the counting tool is missing.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import callgrind  # noqa: E402

MESSAGES = 96
SLACK = 0.02
SKIPPED = 77
SECONDS_MAX = 300

# what the table calls it -> the function of the program that does it
SIDES = {"frame sent": "budget_sender_turn", "frame received": "budget_receiver_turn"}
AGAIN = "share of the payload read twice"
APART = re.compile(r"cluster::wire::fast::|cluster::wire::crc32c(_copy)?\(|BudgetLink::|^_*mem(cpy|move|set)")


def count(program, function):
    """Runs the program under callgrind; returns the function's share of the profile, how many frames it sent, and which
    share of the payload the receiver has read both for a checksum and for a copy."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "profile")
        command = ["valgrind", "--tool=callgrind", f"--toggle-collect={function}*", f"--callgrind-out-file={out}", program,
                   str(MESSAGES)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        frames = re.search(r"^frames (\d+)$", result.stdout, re.MULTILINE)
        again = re.search(r"^read again ([0-9.]+)$", result.stdout, re.MULTILINE)
        if result.returncode != 0 or not os.path.exists(out) or frames is None or again is None:
            raise RuntimeError(f"{' '.join(command)}\nended with status {result.returncode}:\n{result.stderr}")
        with open(out, encoding="utf-8") as file:
            return callgrind.Profile(file), int(frames.group(1)), float(again.group(1))


def budget_of(path):
    """The rows of the table: | step | instructions |."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0] in (*SIDES, AGAIN) and len(cells) == 2:
                rows[cells[0]] = float(cells[1])
    missing = [row for row in (*SIDES, AGAIN) if row not in rows]
    if missing:
        raise RuntimeError(f"{path}: no budget for {', '.join(missing)}")
    return rows


def measure(program, functions):
    """Table row -> instructions a frame; prints the dearest functions of each."""
    rows = {}
    for row, function in SIDES.items():
        profile, frames, rows[AGAIN] = count(program, function)
        own = {name: costs.get("Ir", 0) / frames for name, costs in profile.own.items()}
        rows[row] = sum(cost for name, cost in own.items() if not APART.search(name))
        for name, cost in sorted(own.items(), key=lambda entry: -entry[1])[:functions]:
            print(f"{cost:8.1f}{'  (apart)' if APART.search(name) else '         '} {name.split('(')[0]}")
        print(f"{row:<28} {rows[row]:.1f} instructions, {sum(own.values()):.1f} with copies, checksums and link")
    print(f"{AGAIN:<28} {rows[AGAIN]:.3f}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="", help="the document with the table; without it figures are only printed")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="show the N dearest functions of each side")
    parser.add_argument("program", help="budget_bulk")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("needs valgrind (Debian: valgrind): not run")
        return SKIPPED
    measured = measure(options.program, options.functions)
    if not options.budget:
        return 0
    budget = budget_of(options.budget)
    # Half an instruction, or a thousandth of the payload, is what rounding in the table can hide.
    grown = [row for row, cost in measured.items() if cost > budget[row] * (1 + SLACK) + (0.001 if row == AGAIN else 0.5)]
    for row in grown:
        print(f"FAIL: {row}: {measured[row]:.3f}, the budget is {budget[row]:g}")
    for row, cost in measured.items():
        if cost < budget[row] * (1 - SLACK):
            print(f"note: {row}: fewer than the budgeted {budget[row]:g}: lower the table in docs/budget.md")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
