#!/usr/bin/env python3
"""What the packages give an operator: units of systemd that expose little, and a PAM file that asks for a password and an account."""
import os
import re
import shutil
import subprocess
import unittest

PACKAGING = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "packaging")
EXPOSURE_MAX = 4.0


def text_of(*names):
    with open(os.path.join(PACKAGING, *names), encoding="utf-8") as file:
        return file.read()


class Units(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_services_expose_little(self):
        for name in ("clusterd", "cluster-page", "cluster-ip"):
            result = subprocess.run(["systemd-analyze", "security", "--offline=yes", os.path.join(PACKAGING, f"{name}.service")],
                                    capture_output=True, text=True, check=False)
            found = re.search(r"exposure level for \S+: ([\d.]+)", result.stdout)
            self.assertTrue(found, result.stderr)
            self.assertLess(float(found.group(1)), EXPOSURE_MAX, name)

    def test_a_login_needs_a_password_and_an_account(self):
        for name, line in (("debian", r"^@include common-{}$"), ("redhat", r"^{} +include +password-auth$")):
            for kind in ("auth", "account"):
                self.assertRegex(text_of("pam", name), re.compile(line.format(kind), re.MULTILINE))
        self.assertIn("packaging/pam/debian", text_of("..", "debian", "rules"))
        self.assertIn("packaging/pam/redhat", text_of("libfabric-cluster.spec"))


if __name__ == "__main__":
    unittest.main()
