#!/usr/bin/env python3
"""`cmake --install` into a directory, seen by its users: commands find what they run, pkg-config and CMake find the
package, each file belongs to one component."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = None
PROGRAM = """\
#include <rdma/fabric.h>
#include <rdma/fi_ext_cluster.h>
int main(void) { return 0; }
"""
# A program that uses the package.
USER = """\
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(libfabric-cluster 0.9 REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE libfabric-cluster::libfabric-cluster)
if(NOT EXISTS ${libfabric-cluster_PROVIDER_DIR}/libcluster-fi.so)
  message(FATAL_ERROR "no plugin in ${libfabric-cluster_PROVIDER_DIR}")
endif()
"""


def files(prefix):
    return {os.path.relpath(os.path.join(folder, name), prefix) for folder, _, names in os.walk(prefix) for name in names}


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, **options)


class InstalledTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="install-")
        cls.addClassCleanup(directory.cleanup)
        cls.prefix = directory.name
        result = run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", cls.prefix)
        if result.returncode != 0:
            raise RuntimeError(result.stdout + result.stderr)

    def find(self, name):
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.prefix) if name in names]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def test_scripts_use_what_is_installed(self):
        """From another directory, by their links in bin, and without a word about the source tree."""
        for command in ("vcluster", "cluster-machine", "cluster-map", "cluster-perf", "cluster-run", "cluster-why"):
            result = run(os.path.join(self.prefix, "bin", command), "--help", cwd=self.prefix)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("build/release", result.stdout)
        result = run(os.path.join(self.prefix, "bin", "cluster-perf"), "--smoke", "--places", "inside", "--peers", "cluster",
                     "--measures", "latency", cwd=self.prefix)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"revision {OPTIONS.version}", result.stdout)

    def test_each_command_names_the_packages_that_it_lacks(self):
        """An installed tree has no util/setup to install them."""
        modules = os.path.dirname(os.path.realpath(os.path.join(self.prefix, "bin", "vcluster")))
        asked = set()
        for folder, _, names in os.walk(modules):
            for name in names:
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        asked |= set(re.findall(r'(?:packages\(|purpose=)"(\w+)"', file.read()))
        self.assertLess({"agent", "page", "slurm", "gridengine"}, asked)
        ask = "import sys; from cluster_lib import build\nfor name in sys.argv[1:]:\n try: build.packages(name)\n" \
              " except build.BuildError as error: print(error)"
        result = run(sys.executable, "-B", "-c", ask, *sorted(asked), env={**os.environ, "PYTHONPATH": modules})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line for line in result.stdout.splitlines() if not line.startswith("packages are missing: apt install ")], [])
        self.assertEqual(len(result.stdout.splitlines()), len(asked))

    def test_units_start_what_is_installed(self):
        """Wherever that is, and packages are put together below another root."""
        for command in ("clusterd", "cluster-page"):
            with open(self.find(f"{command}.service"), encoding="utf-8") as file:
                started = [line.split()[0] for line in file if line.startswith("ExecStart=")]
            self.assertEqual(started, [f"ExecStart={self.prefix}/sbin/{command}"])
        with tempfile.TemporaryDirectory(prefix="install-root-") as root:
            result = run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", "/opt/a b", env={**os.environ, "DESTDIR": root})
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(os.path.join(root, "opt", "a b", "lib", "systemd", "system", "clusterd.socket"), encoding="utf-8") as file:
                self.assertIn("ListenStream=@clusterd-1\n", file.read())

    def test_what_is_missing_is_named(self):
        os.rename(self.find("bare_perf"), os.path.join(self.prefix, "hidden"))
        result = run(os.path.join(self.prefix, "bin", "cluster-perf"), "--smoke")
        os.rename(os.path.join(self.prefix, "hidden"), os.path.join(os.path.dirname(self.find("fabric_perf")), "bare_perf"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^cluster-perf: \S*/bare_perf is not installed\n$")

    def test_a_page_without_scripts_of_others(self):
        """A package that was built without network has none: the page begins, and says what it lacks."""
        modules = os.path.dirname(os.path.realpath(os.path.join(self.prefix, "sbin", "cluster-page")))
        scripts, hidden = os.path.join(modules, "cluster_page_lib", "assets"), os.path.join(self.prefix, "hidden-scripts")
        if os.path.isdir(scripts):
            os.rename(scripts, hidden)
            self.addCleanup(os.rename, hidden, scripts)
        ask = "from cluster_page_lib import assets; print(assets.ensure())"
        result = run(sys.executable, "-B", "-c", ask, cwd=self.prefix, env={**os.environ, "PYTHONPATH": modules})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("htmx.min.js", result.stdout)

    def test_pkg_config(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("pkg-config is not installed")
        found = os.path.dirname(self.find("libfabric-cluster.pc"))
        asked = run("pkg-config", "--modversion", "libfabric-cluster",
                    env={**os.environ, "PKG_CONFIG_PATH": found})
        self.assertEqual(asked.stdout, OPTIONS.version + "\n", asked.stderr)

    def test_cmake_finds_the_package(self):
        with tempfile.TemporaryDirectory(prefix="install-user-") as user:
            for name, text in (("CMakeLists.txt", USER), ("user.c", PROGRAM)):
                with open(os.path.join(user, name), "w", encoding="ascii") as file:
                    file.write(text)
            result = run(OPTIONS.cmake, "-S", user, "-B", os.path.join(user, "build"), f"-DCMAKE_PREFIX_PATH={self.prefix}")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            result = run(OPTIONS.cmake, "--build", os.path.join(user, "build"))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_components_are_everything(self):
        """Each file belongs to one package."""
        parts = set()
        for component in ("runtime", "development", "utilities"):
            with tempfile.TemporaryDirectory(prefix="install-part-") as prefix:
                self.assertEqual(run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", prefix, "--component",
                                     component).returncode, 0)
                found = files(prefix)
                self.assertFalse(found & parts)
                parts |= found
        self.assertEqual(files(self.prefix), parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--build", "--cmake", "--version"):
        parser.add_argument(option, required=True)
    OPTIONS = parser.parse_args()
    unittest.main(argv=sys.argv[:1], verbosity=2)
