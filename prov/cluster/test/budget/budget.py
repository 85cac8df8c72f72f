#!/usr/bin/env python3
"""Counts what an 8-byte tagged message or write between two endpoints of one node costs, and holds it to the budget.

usage: budget.py [--budget FILE] [--layers] PROGRAM

Instructions are counted, not time: the same build gives the same figures on any machine, however busy. The budget is the
table in docs/budget.md. Growth of any of its figures by more than 2 % fails; what has become cheaper is reported, so that
the table can follow. Exit status 77: the counting tool is missing.
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

EXCHANGES = 2000
SLACK = 0.02
SKIPPED = 77
SECONDS_MAX = 300

# what the table calls all steps together -> the function of the program that repeats them
TOTALS = {"all five": "budget_exchanges", "a write, all four": "budget_puts", "shared, all four": "budget_accesses"}
# what the table calls it -> the function of the program that does it
STEPS = {
    "fi_trecv": "budget_receive",
    "fi_tsend": "budget_send",
    "fi_cq_read, send complete": "budget_read_sent",
    "fi_cq_read, message arrives": "budget_read_received",
    "fi_cq_read, nothing there": "budget_read_nothing",
    "fi_write": "budget_write",
    "fi_cq_read, the target writes": "budget_take_write",
    "fi_cq_read, write complete": "budget_read_written",
    "fi_write, shared": "budget_store",
    "fi_read, shared": "budget_load",
    "fi_cq_read, shared": "budget_read_accessed",
    **TOTALS,
}
# What comes by the clock and not with the message is left out: it would count how slow the counting tool is.
RHYTHMS = ["cluster::engine::EventLoop::poll_network", "cluster::engine::EventLoop::check_local_peers",
           "cluster::engine::EventLoop::run_by_clock"]
CALLERS = 9  # from those up to the step, and some more
EVENTS = {"instructions": "Ir", "branches": "Bc", "locked": "Ge"}
_LAYER = re.compile(r"prov/cluster/src/(\w+)/")


def count(program):
    """Runs the program under callgrind; returns the profile of its measured part."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "profile")
        command = ["valgrind", "--tool=callgrind", *(f"--toggle-collect={function}*" for function in TOTALS.values()), "--branch-sim=yes",
                   "--collect-bus=yes", f"--callgrind-out-file={out}",
                   *(f"--separate-callers{CALLERS}={name}*" for name in RHYTHMS), program, str(EXCHANGES)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        if result.returncode != 0 or not os.path.exists(out):
            raise RuntimeError(f"{' '.join(command)}\nended with status {result.returncode}:\n{result.stderr}")
        with open(out, encoding="utf-8") as file:
            return callgrind.Profile(file)


def per_exchange(costs):
    return {name: costs.get(event, 0) / EXCHANGES for name, event in EVENTS.items()}


def steps_of(counted):
    """Table row -> figures per exchange."""
    def total(chosen):
        return {event: sum(costs.get(event, 0) for costs in chosen) for event in counted.events}

    rows = {}
    # One inside another is left out with it.
    rhythms = {name: costs for name, costs in counted.inclusive.items()
               if name.startswith(tuple(RHYTHMS)) and not any(outer in name.partition("'")[2] for outer in RHYTHMS)}
    for row, function in STEPS.items():
        found = [costs for name, costs in counted.inclusive.items() if re.match(rf"{function}\b", name)]
        if not found:
            raise RuntimeError(f"the profile knows no function {function}")
        apart = total([costs for name, costs in rhythms.items() if function in name])
        rows[row] = per_exchange({event: cost - apart[event] for event, cost in total(found).items()})
    return rows


def layers_of(counted):
    """Layer -> instructions per exchange of its own code, wherever it was inlined."""
    layers = {}
    for file, costs in counted.by_file.items():
        match = _LAYER.search(file)
        layer = match.group(1) if match else "outside (libc, libstdc++, libfabric, the program)"
        layers[layer] = layers.get(layer, 0) + costs.get("Ir", 0) / EXCHANGES
    return layers


def budget_of(path):
    """The rows of the table: | step | instructions | branches | locked |."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[0] in STEPS and len(cells) == len(EVENTS) + 1:
                rows[cells[0]] = {name: float(cell) for name, cell in zip(EVENTS, cells[1:])}
    missing = [row for row in STEPS if row not in rows]
    if missing:
        raise RuntimeError(f"{path}: no budget for {', '.join(missing)}")
    return rows


def judge(measured, budget):
    """Prints the table; returns the lines about what grew."""
    grown = []
    for row, figures in measured.items():
        cells = []
        for name, value in figures.items():
            allowed = budget[row][name]
            cells.append(f"{name} {value:.1f} of {allowed:g}")
            # Half a unit is what rounding in the table can hide; what comes once in many turns are fractions.
            if value > allowed * (1 + SLACK) + 0.5:
                grown.append(f"{row}: {value:.1f} {name}, the budget is {allowed:g}")
        print(f"{row:<28} {', '.join(cells)}")
    for row in TOTALS:
        saved = budget[row]["instructions"] - measured[row]["instructions"]
        if saved > SLACK * budget[row]["instructions"]:
            print(f"note: {row}: {saved:.0f} instructions fewer than budgeted: lower the table in docs/budget.md")
    return grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="", help="the document with the table; without it figures are only printed")
    parser.add_argument("--layers", action="store_true", help="show the instructions of each layer, too")
    parser.add_argument("program", help="budget_calls")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("needs valgrind (Debian: valgrind): not run")
        return SKIPPED
    counted = count(options.program)
    measured = steps_of(counted)
    if options.layers:
        for layer, instructions in sorted(layers_of(counted).items(), key=lambda entry: -entry[1]):
            print(f"{layer:<52} {instructions:8.1f}")
    if not options.budget:
        for row, figures in measured.items():
            print(f"| {row} | " + " | ".join(f"{round(value, 1):g}" for value in figures.values()) + " |")
        return 0
    grown = judge(measured, budget_of(options.budget))
    for line in grown:
        print(f"FAIL: {line}")
    if grown:
        print("cure: make it cheaper again; or raise the table in docs/budget.md in the same commit and say there why")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
