#!/usr/bin/env python3
"""`cmake --install` into a directory: libfabric loads the plugin from there, the header compiles, commands and manuals are
there."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

OPTIONS = None
MANUALS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "man")
PROGRAM = """\
#include <rdma/fabric.h>
#include <rdma/fi_ext_cluster.h>
#include <stdio.h>
int main(void) { return printf("%u\\n", fi_version()) < 0; }
"""


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, **options)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="install-")
        cls.addClassCleanup(directory.cleanup)
        cls.prefix = directory.name
        result = run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", cls.prefix)
        if result.returncode != 0:
            raise RuntimeError(result.stdout + result.stderr)

    def find(self, name):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.prefix)
                 if name in names and "completions" not in folder]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def test_libfabric_loads_the_plugin(self):
        plugin = os.path.dirname(self.find("libcluster-fi.so"))
        self.assertEqual(os.path.basename(plugin), "libfabric", "the directory where libfabric looks for plugins")
        result = run("fi_info", "-p", "cluster", env=virtual_nodes.of_provider(plugin))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("provider: cluster\n", result.stdout)

    def test_the_header_compiles(self):
        include = os.path.dirname(os.path.dirname(self.find("fi_ext_cluster.h")))
        result = run(OPTIONS.compiler, "-Wall", "-Wextra", "-Werror", f"-I{include}", f"-I{OPTIONS.libfabric_headers}",
                     "-fsyntax-only", "-x", "c", "-", input=PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)

    def pkg_config(self, *words):
        """What it answers of the tree that was installed here, not where it was meant to be."""
        asked = run("pkg-config", f"--define-variable=prefix={self.prefix}", *words, "libfabric-cluster",
                    env={**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.find("libfabric-cluster.pc"))})
        self.assertEqual(asked.returncode, 0, asked.stderr)
        return asked.stdout.split()

    def test_pkg_config(self):
        """A program needs nothing else to be compiled, linked and run."""
        for program in ("pkg-config", OPTIONS.compiler):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed")
        program = os.path.join(self.prefix, "program")
        flags = self.pkg_config("--cflags", "--libs")
        self.assertIn(f"-I{self.prefix}/include", flags)
        result = run(OPTIONS.compiler, "-x", "c", "-", "-x", "none", "-o", program, *flags, input=PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(run(program).returncode, 0)
        self.assertEqual(self.pkg_config("--variable=providerdir"), [os.path.dirname(self.find("libcluster-fi.so"))])

    def test_commands_and_manuals(self):
        manuals = sorted(name for name in os.listdir(MANUALS) if name[-1] in "178")
        self.assertGreater(len(manuals), 5)
        for name in manuals:
            self.assertEqual(os.path.basename(os.path.dirname(self.find(name))), f"man{name[-1]}")
        for unit in ("clusterd.service", "cluster-page.service", "cluster-ip.service"):
            with open(self.find(unit), encoding="utf-8") as file:
                text = file.read()
            started = re.search(r"^ExecStart=(\S+)", text, re.MULTILINE).group(1)
            self.assertTrue(started.startswith(self.prefix) and os.access(started, os.X_OK), f"{unit} starts {started}")
            name, section = re.search(r"^Documentation=man:(\S+)\((\d)\)$", text, re.MULTILINE).groups()
            self.find(f"{name}.{section}")
        result = run(self.find("cluster-info"), "--host")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--build", "--cmake", "--compiler", "--libfabric-headers"):
        parser.add_argument(option, required=True)
    OPTIONS = parser.parse_args()
    if shutil.which("fi_info") is None:
        virtual_nodes.skip("fi_info is not installed")
    unittest.main(argv=sys.argv[:1], verbosity=2)
