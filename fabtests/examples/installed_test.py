#!/usr/bin/env python3
"""The examples as users have them: from the installed tree, built there, and run over the installed plugin.

    installed_test.py c|python --build DIR --cmake PROGRAM
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import processes
from processes import virtual_nodes

OPTIONS = None
PORT = 20200
PROGRAMS = ("messages", "sleeping")  # the others run as CMake builds them
PROCESSES = 4
WAKES_A_REQUEST_MAX = 5  # its message, its reply, and what connecting takes
MPI = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster")


def python_with(*modules):
    """An interpreter that has them, or None: Debian's, if that of this program has not."""
    imports = "; ".join(f"import {module}" for module in modules)
    for program in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([program, "-c", imports], capture_output=True, check=False).returncode == 0:
            return program
    return None


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="examples-")
        cls.addClassCleanup(directory.cleanup)
        prefix = os.path.join(directory.name, "prefix")
        for component in ("runtime", "development"):
            subprocess.run([OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", prefix, "--component", component], check=True,
                           stdout=subprocess.DEVNULL)
        found = {name: folder for folder, folders, files in os.walk(prefix) for name in (*folders, *files)}
        cls.environment = virtual_nodes.of_provider(found["libcluster-fi.so"])
        cls.examples = os.path.join(directory.name, "examples")
        shutil.copytree(os.path.join(found["examples"], "examples"), cls.examples)
        cls.cluster = virtual_nodes.shared()

    def in_examples(self, *words, folder="."):
        result = subprocess.run(words, cwd=os.path.join(self.examples, folder), env=self.environment, capture_output=True,
                                text=True, check=False, timeout=200)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout


class C(Installed):
    def test_they_run(self):
        self.in_examples("make", "-j2", "CFLAGS=-O1 -Wall -Wextra -Werror")
        for number, (program, nodes) in enumerate((program, nodes) for program in PROGRAMS for nodes in (1, 2)):
            with self.subTest(program=program, nodes=nodes):
                results, said = processes.run(self.cluster, [os.path.join(self.examples, program)], PROCESSES, PORT + number, nodes,
                                              self.environment)
                self.assertEqual(results, [0] * PROCESSES)
                self.assertIn(f"over cluster\n{program}: ", said)
                if program == "sleeping":
                    self.sleeps(said)

    def sleeps(self, said):
        """The queue wakes the server for what comes and then lets it sleep: without fi_trywait it would do one or the other."""
        requests, wakes = map(int, re.search(r"(\d+) requests answered, .* woken (\d+) times by the queue", said).groups())
        self.assertGreater(wakes, 0, said)
        self.assertLess(wakes, WAKES_A_REQUEST_MAX * requests, said)

    def test_those_of_folders_are_built(self):
        flags = "-O0 -Wall -Wextra -Werror"
        for folder in ("dsm", "mailbox", *(["dsm/mpi"] if shutil.which("mpicc") else [])):
            self.in_examples("make", "-j2", f"CFLAGS={flags}", f"CXXFLAGS={flags}", folder=folder)


class Python(Installed):
    def test_cffi(self):
        python = python_with("cffi")
        self.in_examples(python, "fabric_build.py", folder="python")
        for nodes in (1, 2):
            where = f"{self.cluster.address(1)}:{PORT + 10 + nodes}"
            words = (python, os.path.join(self.examples, "python", "put.py"), where)
            first = virtual_nodes.start(self.cluster.command(1, *words), self.environment, stdout=subprocess.PIPE, text=True)
            self.assertTrue(processes.wait_until_it_listens(self.cluster, 1, PORT + 10 + nodes, first))
            second = virtual_nodes.start(self.cluster.command(nodes, *words), self.environment)
            self.assertEqual(second.wait(60), 0)
            self.assertEqual(first.communicate(timeout=60)[0], "put.py over cluster: 27000 bytes came, as they were sent\n")

    def test_mpi4py(self):
        said = self.in_examples(*self.cluster.mpirun("-np", "4", *MPI, python_with("mpi4py"), "pi.py"), folder="python")
        self.assertRegex(said, r"pi\.py: 4 processes, pi is about 3\.1\d+, 0 were wrong\n")


def main():
    global OPTIONS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("c", "python"))
    for option in ("--build", "--cmake"):
        parser.add_argument(option, required=True)
    OPTIONS = parser.parse_args()
    needed = ("make", "cc", "g++", "pkg-config") if OPTIONS.part == "c" else ("mpirun", "cc")
    virtual_nodes.require(*needed)
    if OPTIONS.part == "python" and not (python_with("cffi") and python_with("mpi4py")):
        virtual_nodes.skip("python3-cffi or python3-mpi4py is not installed")
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(C if OPTIONS.part == "c" else Python)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
