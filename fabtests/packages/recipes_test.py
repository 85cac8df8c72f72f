#!/usr/bin/env python3
"""The recipes in packaging are about this tree: version, licence, options of CMake, commands of the README, installed files.

    recipes_test.py --build DIRECTORY --cmake COMMAND

Where rpmspec is installed, it reads its recipe, too. packages.recipes builds with the tools.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in (".", os.path.join("..", "documents")):
    sys.path.insert(0, os.path.join(HERE, folder))
import readme  # noqa: E402
import recipes  # noqa: E402

LICENCE = "BSD-2-Clause OR GPL-2.0-only"
OPTIONS = None


def run(*words):
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    if result.returncode:
        raise AssertionError(f"{' '.join(words)}: {result.stdout}{result.stderr}")
    return result.stdout


class Recipes(unittest.TestCase):
    def test_the_version_is_that_of_the_project(self):
        for recipe in recipes.all_of_them():
            self.assertEqual(set(recipe.versions) - {recipes.project_version()}, set(), recipe.name)

    def test_the_licence_is_that_of_the_project(self):
        self.assertIn("SPDX-License" + f"-Identifier: {LICENCE}\n", recipes.text("LICENSE"))  # reuse reads this file, too
        for recipe in recipes.all_of_them():
            self.assertIn(recipe.licence, ("", LICENCE), recipe.name)

    def test_options_are_those_of_the_build(self):
        known = set(re.findall(r"^ *(?:option\(|set\()(CLUSTER_\w+)", recipes.text("CMakeLists.txt"), re.MULTILINE))
        for recipe in recipes.all_of_them():
            self.assertEqual(recipe.options.get("CLUSTER_TESTS"), "OFF", recipe.name)
            self.assertEqual({name for name in recipe.options if name.startswith("CLUSTER_")} - known, set(), recipe.name)

    def test_commands_are_those_of_the_readme(self):
        """But for options that say where to install, and what a package has."""
        def plain(command):
            return " ".join(word for word in command.split() if not word.startswith(("-DCMAKE_", "-DCLUSTER_WERROR")))

        lines = {plain(part) for block in readme.blocks() for command in block.commands()
                 for part in re.split(r" && | {2,}#.*", command)}
        for recipe in recipes.all_of_them():
            for command in recipe.commands:
                self.assertIn(plain(command).partition(" --component ")[0], lines, recipe.name)

    def test_files_are_those_of_the_installation(self):
        with tempfile.TemporaryDirectory(prefix="recipes-") as prefix:
            run(OPTIONS.cmake, "--install", OPTIONS.build, "--prefix", prefix)
            plugin, = glob.glob(os.path.join(prefix, "**", "libcluster-fi.so"), recursive=True)
            library = os.path.relpath(os.path.dirname(os.path.dirname(plugin)), prefix)
            for recipe in recipes.all_of_them():
                for path in recipe.files:
                    if path.startswith("%config"):
                        continue
                    here = re.sub(r"^lib/(?!systemd)", library + "/", path)
                    self.assertTrue(glob.glob(os.path.join(prefix, here)), f"{recipe.name}: {path}")

    def test_the_page_about_fedora_installs_what_the_build_asks_for(self):
        asked = set(re.findall(r"^BuildRequires: +(\S+)", recipes.text("packaging", f"{recipes.NAME}.spec"), re.MULTILINE))
        installed = re.findall(r"^dnf install ([^./\n]*)$", recipes.text("docs", "site", "start", "fedora.md"), re.MULTILINE)
        self.assertEqual(asked - set(" ".join(installed).split()), set())
        # Fedora has the archive of the library in a package of its own.
        self.assertIn("-static-libstdc++", recipes.text("prov", "cluster", "CMakeLists.txt"))
        self.assertIn("libstdc++-static", asked)

    def test_documents_say_the_same_of_the_version(self):
        version = recipes.project_version()
        changes = recipes.text("CHANGELOG.md")
        self.assertEqual(re.findall(r"^## \[(\d[\d.]*)\]", changes, re.MULTILINE)[0], version)
        self.assertEqual(re.findall(r"^\| ([\d.]+) \| \d+ \|", recipes.text("prov", "cluster", "docs", "packaging.md"), re.MULTILINE)[-1], version)
        self.assertEqual(re.search(r"^%changelog\n\* .* - ([\d.]+)-\d+$", recipes.text("packaging", f"{recipes.NAME}.spec"), re.MULTILINE).group(1), version)
        self.assertIn(f"| {version.rpartition('.')[0]} (newest ", recipes.text("SECURITY.md"))
        if shutil.which("git") and f"v{version}" in subprocess.run(["git", "-C", recipes.TOP, "tag"], capture_output=True, text=True, check=False).stdout.split():
            for name in ("CHANGELOG.md", "SECURITY.md", os.path.join("prov", "cluster", "docs", "packaging.md")):
                self.assertNotRegex(recipes.text(name), r"(?i)no version has been\s+released|nothing is released", f"{name}: it is")
            self.assertRegex(changes, rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$")

    def test_nothing_leads_nowhere(self):
        """Only the forms of Debian and RPM demand an address of mail, and theirs is one of a domain that is reserved."""
        for folder in ("packaging", "debian", "docs", "man", "util", "examples"):
            for path in glob.glob(os.path.join(recipes.TOP, folder, "**", "*"), recursive=True):
                if not os.path.isfile(path) or os.sep + "static" + os.sep in path:
                    continue
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read().replace("<authors@cluster.example>", "")
                found = re.search(r"(?i)https?://[\w.]*\bexample\b.*|@[\w.]+\.example\b|\bFIXME\b|\bTODO\b|your name", text)
                self.assertIsNone(found, path)
        for name in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
            self.assertNotIn("debian/control", recipes.text(name), "nobody reads what is sent there")

    def test_other_projects_are_told_our_number(self):
        magic = re.search(r"kMagic = (0x[0-9A-F]+);", recipes.text("prov", "cluster", "src", "wire", "frame.h")).group(1)
        asked = recipes.text("docs", "upstream.md")
        self.assertIn(f"(int) (FI_PROV_SPECIFIC | {magic}),", asked)
        self.assertIn(f"{0x80000000 | int(magic, 16):#010X}".replace("X", "x"), asked)

    def test_the_archive_has_the_tree(self):
        if shutil.which("git") is None or not os.path.exists(os.path.join(recipes.TOP, ".git")):
            self.skipTest("no clone")
        run(os.path.join(recipes.TOP, "util", "package"), "--archive")
        name = f"{recipes.NAME}-{recipes.project_version()}"
        listed = run("tar", "-tzf", os.path.join(recipes.TOP, "build", "package", f"{name}.tar.gz")).splitlines()
        tracked = run("git", "-C", recipes.TOP, "ls-files").splitlines()
        self.assertEqual({path for path in tracked if os.path.lexists(os.path.join(recipes.TOP, path)) and f"{name}/{path}" not in listed}, set())

    @unittest.skipUnless(shutil.which("rpmspec"), "no rpmspec")
    def test_rpm_reads_the_spec(self):
        said = run("rpmspec", "--query", "--queryformat", "%{name} %{version}\n", os.path.join(recipes.PACKAGING, f"{recipes.NAME}.spec"))
        self.assertEqual(set(said.split("\n")) - {""}, {f"{recipes.NAME}{end} {recipes.project_version()}" for end in ("", "-devel", "-utils")})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cmake", default="cmake")
    OPTIONS = parser.parse_args()
    unittest.main(argv=sys.argv[:1], verbosity=2)
