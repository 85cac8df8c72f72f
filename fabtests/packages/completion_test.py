#!/usr/bin/env python3
"""Checks bash's completions for the commands in a separate shell, which loads them from the given directories."""
import argparse
import os
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
COMPLETION = os.path.join(HERE, "..", "..", "packaging", "completion", "cluster.bash")
OPTIONS = None
# Prints a line for each completion of the last of the words given.
SCRIPT = """
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
$(complete -p "$1" | sed 's/.* -F \\([^ ]*\\).*/\\1/') "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""


# Like the output of `vcluster list` with two running clusters.
LIST = """#!/bin/sh
echo "one: up, 2 nodes, 1 rails, mtu 1500, rate unlimited"
echo "  node1    10.64.0.1"
echo "  node2    10.64.0.2"
echo "other: up, 1 nodes, 1 rails, mtu 1500, rate unlimited"
echo "  node1    10.65.0.1"
"""


def completed(*words, first=()):
    path = os.pathsep.join([*first, *map(os.path.abspath, OPTIONS.commands), os.environ["PATH"]])
    result = subprocess.run(["bash", "--norc", "-c", SCRIPT, "completion", COMPLETION, *words], capture_output=True, text=True,
                            check=True, timeout=60, env={**os.environ, "PATH": path})
    return result.stdout.split()


class Completion(unittest.TestCase):
    def test_options_are_those_of_the_help(self):
        self.assertEqual(completed("cluster-info", "--h"), ["--help", "--host"])
        self.assertIn("--libfabric", completed("cluster-perf", "--"))
        self.assertEqual(completed("vcluster", "up", "--r"), ["--rails", "--rate"])
        self.assertEqual(completed("cluster-status", "--d"), ["--drain"])
        self.assertEqual(completed("cluster-why", "--no"), ["--nodes"])
        self.assertEqual(completed("cluster-machine", "--h"), ["--help", "--hostfile"])
        self.assertEqual(completed("cluster-run", "--r"), ["--ranks"])
        self.assertEqual(completed("cluster-map", "--s"), ["--svg"])
        self.assertEqual(completed("cluster-key", "--o"), ["--out", "--owner"])

    def test_commands(self):
        self.assertEqual(completed("vcluster", "f"), ["faults"])
        self.assertEqual(completed("vcluster", "exec", "sw"), ["switch"])

    def test_clusters_and_nodes(self):
        with tempfile.TemporaryDirectory(prefix="completion-") as directory:
            with open(os.path.join(directory, "vcluster"), "w", encoding="ascii") as file:
                file.write(LIST)
            os.chmod(file.name, 0o755)
            self.assertEqual(completed("vcluster", "exec", "", first=[directory]), ["node1", "node2", "switch"])
            self.assertEqual(completed("vcluster", "agents", "--kill", "n", first=[directory]), ["node1", "node2"])
            self.assertEqual(completed("vcluster", "down", "--name", "", first=[directory]), ["one", "other"])

    def test_the_last_of_a_list(self):
        self.assertEqual(completed("cluster-perf", "--measures", "latency,bandw"), ["latency,bandwidth"])
        self.assertEqual(completed("cluster-perf", "--places", "b"), ["between"])
        self.assertIn("shm", completed("cluster-perf", "--peers", "s"))

    def test_nothing_else(self):
        self.assertEqual(completed("cluster-info", "--nothing-begins-so"), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", nargs="+", required=True)
    OPTIONS = parser.parse_args()
    unittest.main(argv=["completion_test"], verbosity=2)
