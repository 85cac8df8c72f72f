#!/usr/bin/env python3
"""The RPM packages: built from their spec, each file of the installed tree in one of them, and nothing left of them after
their removal from an empty root. That root has no other packages, so what they depend on is read and not satisfied."""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
BUILT = os.path.join(TOP, "build", "package", "rpm")
NAMES = ("libfabric-cluster", "libfabric-cluster-devel", "libfabric-cluster-utils")
DATABASE = "/database"  # of rpm, in its root


def rpm(*words, root=None):
    result = subprocess.run(["rpm", *(["--root", root, "--dbpath", DATABASE] if root else []), *words], capture_output=True, text=True, timeout=120)
    if result.returncode:
        raise AssertionError(f"rpm {' '.join(words)}: {result.stdout}{result.stderr}")
    return result.stdout.splitlines()


def package(name):
    found = glob.glob(os.path.join(BUILT, f"{name}-[0-9]*.rpm"))
    if len(found) != 1:
        raise AssertionError(f"{len(found)} packages of the name {name} in {BUILT}")
    return found[0]


def paths_in(root):
    return {os.path.join(folder, name)[len(root):] for folder, _, files in os.walk(root) for name in files
            if not folder.startswith(root + DATABASE)}


class RpmPackages(unittest.TestCase):
    def test_each_has_what_its_component_has(self):
        wanted = {NAMES[0]: "libfabric/libcluster-fi.so", NAMES[1]: "/include/rdma/fi_ext_cluster.h", NAMES[2]: "/bin/cluster-info"}
        for library in ("mpich", "openmpi"):
            self.assertTrue([line for line in rpm("-qlp", package(NAMES[0])) if line.endswith(f"/libcluster-coll-{library}.so")], library)
        for name, path in wanted.items():
            listed = rpm("-qlp", package(name))
            self.assertTrue([line for line in listed if line.endswith(path)], f"{path} in {name}")
            for other in set(NAMES) - {name}:
                self.assertFalse([line for line in rpm("-qlp", package(other)) if line.endswith(path)], f"{path} in {other}")

    def test_what_they_depend_on(self):
        self.assertIn("libfabric >= 1.17", rpm("-qRp", package(NAMES[0])))
        self.assertIn("libfabric-devel >= 1.17", rpm("-qRp", package(NAMES[1])))
        needed = rpm("-qRp", package(NAMES[2]))
        self.assertTrue([line for line in needed if line.startswith("libfabric-cluster(") or line.startswith("libfabric-cluster =")], needed)
        self.assertFalse([line for line in rpm("-qRp", package(NAMES[0])) if line.startswith("libfabric.so")], "bound at run time")

    def test_install_verify_remove(self):
        with tempfile.TemporaryDirectory(prefix="rpm-root-") as root:
            rpm("--initdb", root=root)
            rpm("-i", "--nodeps", "--noscripts", *map(package, NAMES), root=root)  # there is no shell; units_test.py runs the scripts
            self.assertTrue(os.access(os.path.join(root, "usr/bin/cluster-info"), os.X_OK))
            self.assertEqual(rpm("-V", "--nodeps", *NAMES, root=root), [])
            rpm("-e", "--nodeps", "--noscripts", *NAMES, root=root)
            self.assertEqual(paths_in(root), set())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--built", action="store_true", help="they lie in build/package/rpm already")
    if not parser.parse_args().built and subprocess.run([os.path.join(TOP, "util", "package"), "--rpm"], check=False).returncode:
        sys.exit(1)
    unittest.main(argv=sys.argv[:1], verbosity=2)
