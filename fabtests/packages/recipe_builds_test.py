#!/usr/bin/env python3
"""EasyBuild, rattler-build and buildah build from the recipes in packaging, as far as this is possible without their servers.

    recipe_builds_test.py [--cases CASE,...]        easybuild, conda, container

EasyBuild and rattler-build take compiler and libfabric from this system, because their own could not be fetched. The image's Debian is
made by mmdebstrap. `util/setup --for recipes` installs the tools.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in (".", ".."):
    sys.path.insert(0, os.path.join(HERE, folder))
import clean_debian  # noqa: E402
import recipes  # noqa: E402
import virtual_nodes  # noqa: E402

TOP = recipes.TOP
TOOLS = os.path.join(TOP, "build", "recipes", "bin")
SECONDS_MAX = 2400
FOUND = "provider: cluster"
# With the recipe's requirements left out, and a channel that is empty.
CONDA = """
import json, os, sys, yaml, rattler_build as build
top, out = sys.argv[1:]
with open(top + "/packaging/conda/recipe.yaml") as file:
    recipe = yaml.safe_load(file)
stage = build.Stage0Recipe.from_dict(recipe).render(build.VariantConfig({"c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}))
print("requirements:", json.dumps(stage[0].recipe.to_dict()["requirements"]))
recipe["requirements"] = {}
recipe["source"]["path"] = top
recipe["tests"] = recipe["tests"][:1]
for place in ("noarch", "linux-64"):
    os.makedirs(f"{out}/channel/{place}")
    with open(f"{out}/channel/{place}/repodata.json", "w") as file:
        json.dump({"info": {"subdir": place}, "packages": {}, "packages.conda": {}}, file)
made = build.Stage0Recipe.from_dict(recipe).run_build(output_dir=out + "/output", channels=["file://" + out + "/channel"],
    tool_config=build.ToolConfiguration(test_strategy="native"), env_isolation=build.EnvironmentIsolation.NONE)
print("built:", *(path for each in made for path in each.packages))
"""


def run(*words, **settings):
    """What a command says; the log has it if it fails."""
    result = subprocess.run(words, cwd=TOP, env={**virtual_nodes.without_settings(), **settings}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, timeout=SECONDS_MAX)
    if result.returncode:
        raise AssertionError(f"{' '.join(words)}: exit status {result.returncode}\n{result.stdout[-6000:]}")
    return result.stdout


class Builds(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="recipe-builds-", dir="/var/tmp")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def easybuild(self):
        run("util/package", "--archive")
        recipe, = (os.path.join("packaging", "easybuild", name) for name in os.listdir(os.path.join(recipes.PACKAGING, "easybuild")))
        before = f". /etc/profile.d/lmod.sh; . {TOOLS}/activate; export EASYBUILD_PREFIX={self.scratch} EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES=1; "
        self.assertIn("All contribution checks PASSed", run("bash", "-c", f"{before} eb --check-contrib {recipe}"))
        self.assertIn("(module: libfabric-cluster/", run("bash", "-c", f"{before} eb --dry-run --robot {recipe}"))
        said = run("bash", "-c", f"{before} eb {recipe} --try-toolchain=system,system --sourcepath build/package "
                                 "--filter-deps=binutils,CMake,Ninja,CLI11,libfabric,Python")
        self.assertIn("result for command 'fi_info -p cluster': OK", said)
        self.assertIn("[SUCCESS] libfabric-cluster/", said)

    def conda(self):
        said = run(os.path.join(TOOLS, "python"), "-c", CONDA, TOP, self.scratch)
        wanted = json.loads(said.partition("requirements: ")[2].partition("\n")[0])
        self.assertIn("libfabric >=1.17", wanted["run"])
        self.assertRegex(said, rf"built: \S*/libfabric-cluster-{recipes.project_version()}-\S+\.conda")

    def container(self):
        run(os.path.join(TOOLS, "hadolint"), "--ignore", "DL3008", "packaging/Containerfile")  # that one wants versions of packages
        with open(os.path.join(self.scratch, "transcript"), "w", encoding="utf-8") as transcript:
            system = clean_debian.CleanDebian(self.scratch, transcript)
            made = system.make("bookworm", ["ca-certificates"])
            self.assertEqual(made.returncode, 0, made.stderr)
        system.join_network()
        shutil.copy(os.path.join(self.scratch, "fetching.conf"), os.path.join(system.root, "etc/apt/apt.conf.d/00fetching"))
        buildah = ("buildah", "--root", os.path.join(self.scratch, "store"), "--runroot", os.path.join(self.scratch, "run"))
        settings = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
        name = run(*buildah, "from", "scratch", **settings).strip()
        run(*buildah, "add", "--quiet", name, system.root, "/", **settings)
        run(*buildah, "commit", "--quiet", "--rm", name, "docker.io/library/debian:12", **settings)
        run(*buildah, "bud", "--pull-never", "--network", "host", "--tag", "cluster", "--file", "packaging/Containerfile", ".", **settings)
        name = run(*buildah, "from", "--pull-never", "localhost/cluster", **settings).strip()
        self.assertIn(FOUND, run(*buildah, "run", "--network", "host", name, "--", "fi_info", "-p", "cluster", **settings))


CASES = ("easybuild", "conda", "container")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES), help="(default: %(default)s)")
    chosen = parser.parse_args().cases.split(",")
    if os.geteuid() != 0:
        virtual_nodes.skip("without root no system can be made")
    if subprocess.run(["util/setup", "--for", "recipes"], cwd=TOP, check=False).returncode:
        virtual_nodes.skip("the tools could not be installed")
    suite = unittest.TestSuite(type(case, (Builds,), {"runTest": getattr(Builds, case)})() for case in chosen)
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
