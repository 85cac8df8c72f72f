#!/usr/bin/env python3
"""The two commands of the README, where nothing was prepared: a new Debian with git, a clone of this tree, and nothing else.

    from_nothing_test.py demo|check [--transcript FILE]

`check` is the short form, `util/check --quick`. Either command installs what it needs and builds what it runs; afterwards the
clone has no change that git sees, and no process, interface or name of a virtual node is left.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import clean_debian  # noqa: E402
import virtual_nodes  # noqa: E402

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
SUITE = "bookworm"
BEFORE = ("ca-certificates", "git", "mount")  # the last is of priority required, but not brought by mmdebstrap
SECONDS_MAX = {"demo": 1200, "check": 3600}
AFTERWARDS = """
echo "changed: $(git status --porcelain | wc -l)"
echo "nodes: $(ls /run/vcluster 2>/dev/null | wc -l)"
echo "running: $(cat /proc/[0-9]*/comm 2>/dev/null | sort -u | tr '\\n' ' ')"
"""
LISTING = {"sh", "cat", "sort", "tr"}  # what runs while the processes are listed
PLACES = ("inside", "between")
OPTIONS = None
SYSTEM = None


def last_lines(text, count=40):
    return "\n".join(text.splitlines()[-count:])


class FromNothing(unittest.TestCase):
    def command(self, *words):
        said = SYSTEM.run(f"cd /cluster\n{' '.join(words)}\n{AFTERWARDS}", alone=False, limit=SECONDS_MAX[OPTIONS.command])
        self.assertIn("\nchanged: 0\nnodes: 0\n", said, last_lines(said))
        self.assertEqual(set(re.search(r"^running: (.*)$", said, re.MULTILINE).group(1).split()) - LISTING, set(), "still running")
        return said

    def demo(self):
        said = self.command("util/demo")
        self.assertRegex(said, r"Done after \d+ s\.\n", last_lines(said))
        for place in PLACES:
            self.assertRegex(said, rf"{place}, mpi:cluster\S*: PASS mpi_check", last_lines(said))

    def check(self):
        said = self.command("util/check", "--quick")
        self.assertRegex(said, r"\ncheck: all passed, ", last_lines(said))


def prepare(directory, transcript, more=()):
    """The new system, with this machine's way to the registries, and a clone of what is committed here."""
    system = clean_debian.CleanDebian(directory, transcript)
    print(f"making a new Debian {SUITE} with {', '.join([*BEFORE, *more])}", flush=True)
    made = system.make(SUITE, [*BEFORE, *more])
    if made.returncode != 0:
        raise RuntimeError(f"mmdebstrap: {made.stderr[-2000:]}")
    system.join_network()
    bare = os.path.join(system.root, "cluster.git")
    subprocess.run(["git", "clone", "--quiet", "--bare", "--no-local", TOP, bare], check=True)
    system.run("git clone --quiet /cluster.git /cluster", alone=False)
    return system


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=sorted(SECONDS_MAX))
    parser.add_argument("--transcript", metavar="FILE", help="(default: build/package/COMMAND.transcript)")
    OPTIONS = parser.parse_args()
    if os.geteuid() != 0:
        virtual_nodes.skip("without root no system can be made")
    if shutil.which("mmdebstrap") is None:
        virtual_nodes.skip("mmdebstrap is not installed (util/setup --for package)")
    virtual_nodes.require("ip", "git")
    path = OPTIONS.transcript or os.path.join(TOP, "build", "package", f"{OPTIONS.command}.transcript")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="from-nothing-") as scratch, open(path, "w", encoding="utf-8") as words:
        SYSTEM = prepare(scratch, words)
        chosen = unittest.TestSuite([type("Chosen", (FromNothing,), {"runTest": getattr(FromNothing, OPTIONS.command)})()])
        sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(chosen).wasSuccessful() else 1)
