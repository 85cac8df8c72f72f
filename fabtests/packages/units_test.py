#!/usr/bin/env python3
"""What the packages give an operator: units of systemd that expose little, and a PAM file that asks for a password and an account."""
import os
import re
import shutil
import subprocess
import tempfile
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

    def calls(self, script, argument, booted=True):
        """What a script of the RPM package asks of systemctl."""
        body = re.search(rf"^%{script} utils\n((?:.+\n)+)", text_of("libfabric-cluster.spec"), re.MULTILINE).group(1)
        with tempfile.TemporaryDirectory(prefix="units-") as place:
            with open(os.open(os.path.join(place, "systemctl"), os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\necho \"$@\" >>{place}/said\nexit 1\n")  # which spoils no transaction
            if booted:
                os.mkdir(os.path.join(place, "run"))
            subprocess.run(["sh", "-eu", "-c", body.replace("/run/systemd/system", f"{place}/run"), script, argument], check=True,
                           env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
            if not os.path.exists(os.path.join(place, "said")):
                return []
            with open(os.path.join(place, "said"), encoding="ascii") as file:
                return file.read().splitlines()

    def test_an_upgrade_of_the_rpm_package_reloads_units_and_restarts_what_may_be_restarted(self):
        reload, restart = "daemon-reload", "try-restart clusterd.service cluster-page.service"
        stop = "--quiet disable --now clusterd.service clusterd.socket cluster-page.service cluster-ip.service"
        first, upgrade, removal = [("post", "1")], [("post", "2"), ("preun", "1"), ("postun", "1")], [("preun", "0"), ("postun", "0")]
        for steps, wanted in ((first, [reload]), (upgrade, [reload, reload, restart]), (removal, [stop, reload])):
            self.assertEqual([call for step in steps for call in self.calls(*step)], wanted)
            self.assertEqual([call for step in steps for call in self.calls(*step, booted=False)], [])
        self.assertEqual(set(stop.split()[3:]), {name for name in os.listdir(PACKAGING) if name.endswith((".service", ".socket"))})

    def test_an_upgrade_of_the_debian_package_does_so_too(self):
        lines = re.search(r"^override_dh_installsystemd:\n((?:\t.*\n)+)", text_of("..", "debian", "rules"), re.MULTILINE).group(1).split("\n")
        restarted, kept = (set(line.split()) - {"-plibfabric-cluster-utils", "--no-enable", "--no-also"} for line in lines[:2])
        self.assertEqual(restarted, {"dh_installsystemd", "clusterd.service", "cluster-page.service"})
        self.assertEqual(kept, {"dh_installsystemd", "--no-stop-on-upgrade", "clusterd.socket", "cluster-ip.service"})

    @unittest.skipUnless(shutil.which("dh_installsystemd"), "no debhelper")
    def test_debhelper_makes_the_scripts(self):
        with tempfile.TemporaryDirectory(prefix="units-") as place:
            package = os.path.join(place, "debian", "libfabric-cluster-utils")
            shutil.copytree(os.path.join(PACKAGING, "..", "debian"), os.path.join(place, "debian"))
            os.makedirs(os.path.join(package, "lib", "systemd", "system"))
            for name in os.listdir(PACKAGING):
                if name.endswith((".service", ".socket")):
                    shutil.copy(os.path.join(PACKAGING, name), os.path.join(package, "lib", "systemd", "system"))
            for command in (["make", "-s", "-f", "debian/rules", "override_dh_installsystemd"], ["dh_installdeb"]):
                subprocess.run(command, cwd=place, check=True)

            def script(name):
                with open(os.path.join(package, "DEBIAN", name), encoding="ascii") as file:
                    return file.read()

            self.assertRegex(script("postinst"), r"systemctl --system daemon-reload")
            self.assertRegex(script("postinst"), r"_dh_action=restart\n(.*\n){3}.*'cluster-page.service' 'clusterd.service'")
            self.assertRegex(script("postinst"), r"deb-systemd-invoke start 'cluster-ip.service' 'clusterd.socket'")
            self.assertNotIn("deb-systemd-helper enable 'clusterd.socket' ||", script("postinst"))
            for units in ("'cluster-page.service' 'clusterd.service'", "'cluster-ip.service' 'clusterd.socket'"):
                self.assertRegex(script("prerm"), rf'"\$1" = remove(.*\n)+?.*stop {units}')

    def test_a_login_needs_a_password_and_an_account(self):
        for name, line in (("debian", r"^@include common-{}$"), ("redhat", r"^{} +include +password-auth$")):
            for kind in ("auth", "account"):
                self.assertRegex(text_of("pam", name), re.compile(line.format(kind), re.MULTILINE))
        self.assertIn("packaging/pam/debian", text_of("..", "debian", "rules"))
        self.assertIn("packaging/pam/redhat", text_of("libfabric-cluster.spec"))


if __name__ == "__main__":
    unittest.main()
