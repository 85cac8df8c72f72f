#!/usr/bin/env python3
"""The commands of util/ in a tree where nothing is built: --help and --version answer at once, and so does cluster-info, whatever it
is asked; what is not there yet is named with the line that builds it. Nothing is built or installed for an answer."""
import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
COMMANDS = ("cluster-info", "cluster-dissect", "cluster-ip", "cluster-key", "cluster-machine", "cluster-map", "cluster-page", "cluster-perf",
            "cluster-run", "cluster-status", "cluster-why", "clusterd", "demo", "vcluster")
BUILT = ("cluster-info", "cluster-dissect", "cluster-ip")
SECONDS = 60
RECORDER = '#!/bin/sh\necho "$(basename "$0") $*" >>"{log}"\nexit 1\n'


class Commands(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="commands-")
        self.addCleanup(directory.cleanup)
        self.tree, self.log = os.path.join(directory.name, "tree"), os.path.join(directory.name, "log")
        shutil.copytree(os.path.join(TOP, "util"), os.path.join(self.tree, "util"), ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("CMakeLists.txt", "CMakePresets.json"):
            shutil.copy(os.path.join(TOP, name), self.tree)
        self.programs = os.path.join(directory.name, "programs")
        os.mkdir(self.programs)
        for path in (os.path.join(self.tree, "util", "setup"), *(os.path.join(self.programs, name) for name in ("cmake", "ninja", "apt-get"))):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755), "w", encoding="ascii") as file:
                file.write(RECORDER.format(log=self.log))

    def run_command(self, name, *words):
        return subprocess.run([os.path.join(self.tree, "util", name), *words], capture_output=True, text=True, timeout=SECONDS, check=False,
                              cwd=self.tree, env={**os.environ, "PATH": self.programs + os.pathsep + os.environ["PATH"]})

    def recorded(self):
        """The files that were built or installed."""
        if not os.path.exists(self.log):
            return ""
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def forget(self):
        if os.path.exists(self.log):
            os.remove(self.log)

    def test_help_and_version_answer_at_once(self):
        for name in COMMANDS:
            for word in ("--help", "--version"):
                with self.subTest(f"{name} {word}"):
                    self.forget()
                    result = self.run_command(name, word)
                    self.assertEqual(self.recorded(), "")
                    if name in BUILT:
                        self.assert_advice(result, name)
                    else:
                        self.assertEqual((result.returncode, result.stderr), (0, ""))
                        self.assertRegex(result.stdout, r"^usage: " if word == "--help" else rf"^{name} \d+\.\d+")

    def assert_advice(self, result, name):
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1), result.stderr)
        self.assertRegex(result.stderr, rf"^{name}: not built yet; type: util/setup --for build && cmake --preset release .*&& "
                                        rf"cmake --build --preset release --target {name}\n$")

    def test_cluster_info_never_builds(self):
        for words in ((), ("--why",), ("--host", "--json"), ("--pid", "1")):
            self.assert_advice(self.run_command("cluster-info", *words), "cluster-info")
        self.assertEqual(self.recorded(), "")

    def test_the_line_to_type_keeps_what_was_chosen(self):
        self.assertIn("-DCLUSTER_TESTS=OFF", self.run_command("cluster-info").stderr, "else tests need packages of their own")
        os.makedirs(os.path.join(self.tree, "build", "release"))
        with open(os.path.join(self.tree, "build", "release", "CMakeCache.txt"), "w", encoding="ascii"):
            pass
        self.assertNotIn("CLUSTER_TESTS", self.run_command("cluster-info").stderr)

    def test_the_line_to_type_works_where_it_is_read(self):
        result = subprocess.run([os.path.join(self.tree, "util", "cluster-info")], capture_output=True, text=True, timeout=SECONDS, check=False,
                                cwd="/")
        self.assertIn(f"type: cd {self.tree} && util/setup", result.stderr)

    def test_a_tree_that_the_demo_has_built_has_cluster_info(self):
        self.run_command("demo")
        self.assertRegex(self.recorded(), r"(?m)^setup --for demo$")
        with open(os.path.join(self.programs, "cmake"), "a", encoding="ascii") as file:
            file.seek(0)
            file.truncate()
            file.write(RECORDER.format(log=self.log).replace("exit 1", "exit 0"))
        self.run_command("demo")
        self.assertRegex(self.recorded(), r"(?m)^cmake --build --preset release --target .*\bcluster-info\b")


if __name__ == "__main__":
    unittest.main(verbosity=2)
