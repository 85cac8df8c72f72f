#!/usr/bin/env python3
"""Runs `cluster-perf --papers` into a page of its own, and checks that no table of the page lacks anything, whatever the figures.

    papers_test.py [--quick] [--page FILE] BUILD     --page: checks that page, measures nothing
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

_UTIL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util")
TABLES = {"CLIC": 4, "BCL-3": 2, "BIP-SMP": 2, "MPI-MPC": 4, "DECK-SCI": 3}
SECONDS_MAX = 5400
# What a page says where it has no figures.
LACKS = ("not measured in this run", "This run did not include", "did not end", "no row for one node")
# A single size has no half of its bandwidth.
MAY_LACK = "waiting asleep"


def faults(text):
    """What the page lacks."""
    found = [line for line in text.splitlines() if any(word in line for word in LACKS)]
    for name, tables in TABLES.items():
        part = re.search(rf"^## {name}.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        runs = len(re.findall(r"^### ", part.group(), re.MULTILINE)) or 1 if part else 0
        there = len(re.findall(r"^\|---", part.group(), re.MULTILINE)) if part else 0
        if there != tables * runs or not runs:
            found.append(f"{name}: {there} tables, not {tables * (runs or 1)}")
    found += [line for line in text.splitlines() if line.startswith("|") and "| - |" in line and MAY_LACK not in line]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less of each measure")
    parser.add_argument("--page", help="check this one")
    parser.add_argument("build")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        page = options.page or os.path.join(directory, "papers.md")
        if not options.page:
            words = [sys.executable, "-B", os.path.join(_UTIL, "cluster-perf"), "--papers", page, "--build", options.build]
            subprocess.run(words + ["--quick"] * options.quick, timeout=SECONDS_MAX, check=True)
        with open(page, encoding="utf-8") as file:
            text = file.read()
    print(text)
    found = faults(text)
    for fault in found:
        print(f"FAIL: {fault}")
    print(f"papers: {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
