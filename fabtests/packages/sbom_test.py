#!/usr/bin/env python3
"""The list of components is well-formed SPDX 2.3, names what the plugin needs and contains, and is the same for the same plugin.

    sbom_test.py --plugin libcluster-fi.so --version VERSION
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import unittest

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util", "sbom")
OPTIONS = None


def written():
    return subprocess.run([sys.executable, "-B", TOOL, "--plugin", OPTIONS.plugin, "--version", OPTIONS.version], text=True,
                          capture_output=True, check=True, timeout=60, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}).stdout


class Sbom(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(written())
        self.packages = {package["name"]: package for package in self.document["packages"]}

    def test_what_spdx_demands_of_every_document(self):
        self.assertEqual((self.document["spdxVersion"], self.document["dataLicense"], self.document["SPDXID"]),
                         ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT"))
        self.assertEqual(self.document["creationInfo"]["created"], "2023-11-14T22:13:20Z")
        names = [package["SPDXID"] for package in self.document["packages"]]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(name, r"^SPDXRef-[A-Za-z0-9.-]+$")
        for relation in self.document["relationships"]:
            self.assertIn(relation["relatedSpdxElement"], names)
            self.assertIn(relation["spdxElementId"], [*names, "SPDXRef-DOCUMENT"])

    def test_the_plugin_is_described_by_its_digest(self):
        own = self.packages["libfabric-cluster"]
        with open(OPTIONS.plugin, "rb") as stream:
            self.assertEqual(own["checksums"][0]["checksumValue"], hashlib.sha256(stream.read()).hexdigest())
        self.assertEqual(own["versionInfo"], OPTIONS.version)

    def test_every_library_is_there_and_none_without_a_license(self):
        for name in ("libstdc++", "libgcc", "glibc", "libfabric", "openssl"):
            self.assertIn(name, self.packages)
        for name, package in self.packages.items():
            self.assertNotEqual(package["licenseDeclared"], "NOASSERTION", f"add {name} to util/sbom")

    def test_the_same_plugin_has_the_same_list(self):
        self.assertEqual(written(), written())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--version", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
