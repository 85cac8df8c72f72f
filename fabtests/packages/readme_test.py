#!/usr/bin/env python3
"""Every line of the README as it stands there, where nothing was prepared: a new Debian with git, Python, and a clone of this tree.

    readme_test.py [--cases CASE,...] [--transcript FILE]

The lines that install and build are run, too; left out are the two commands that test and show all, which packages.from_nothing_...
run, and util/long. The new system answers yes to every question of apt.
"""
import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
for folder in ("..", os.path.join("..", "documents")):
    sys.path.insert(0, os.path.join(HERE, folder))
import readme  # noqa: E402
import virtual_nodes  # noqa: E402
from from_nothing_test import last_lines, prepare  # noqa: E402

SECONDS_MAX = 3600
SYSTEM = None
PASSED, USED = r"(?m)^PASS mpi_check: ", r"endpoint \S+ closed:"
# name -> (commands, what their output must have)
CASES = {**{name: (readme.of_mpi(name), [PASSED, USED]) for name in ("openmpi4", "openmpi5", "mpich", "intel")},
         "pingpong": (readme.of_pingpong(), ["provider: cluster", "(?m)^1m ", USED]),
         "browser": (readme.of_browser(), ["log in as "]),
         "tools": (readme.of_tools(), ["(?m)^PASS mpi_check: .* 8 ranks", r"inet 10\.", "Between nodes, libfabric and UCX"]),
         "manuals": (readme.of_manuals(), [r"FI_CLUSTER\(7\)", r"CLUSTER-KEY\(1\)"]),
         "site": (readme.of_site(), []),
         "picture": (readme.of_picture(), [r"(?m)^[1-9]\d+$"]),
         "slurm": (readme.of_slurm(), ["log in as "]),
         "installation": ([*readme.of_installation(), "unset FI_PROVIDER_PATH; fi_info -p cluster"], ["provider: cluster"])}


class Readme(unittest.TestCase):
    def run_case(self, name):
        commands, patterns = CASES[name]
        script = "\n".join(["set -eo pipefail", "cd /cluster", "rm -rf mpi", *commands])
        said = SYSTEM.run(f"FI_LOG_LEVEL=info exec bash -xc {shlex.quote(script)}", alone=False, limit=SECONDS_MAX)
        for pattern in patterns:
            self.assertTrue(re.search(pattern, said), f"{name}: no {pattern} in\n{last_lines(said)}")


def add_case(number, name):
    setattr(Readme, f"test_{number}_{name}", lambda self: self.run_case(name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES), help="(default: %(default)s)")
    parser.add_argument("--transcript", metavar="FILE", default=os.path.join(readme.TOP, "build", "package", "readme.transcript"))
    options = parser.parse_args()
    if os.geteuid() != 0:
        virtual_nodes.skip("without root no system can be made")
    if shutil.which("mmdebstrap") is None:
        virtual_nodes.skip("mmdebstrap is not installed (util/setup --for package)")
    virtual_nodes.require("ip", "git")
    for at, case in enumerate(options.cases.split(",")):
        add_case(at, case)
    os.makedirs(os.path.dirname(options.transcript), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="readme-") as scratch, open(options.transcript, "w", encoding="utf-8") as words:
        SYSTEM = prepare(scratch, words, ("python3",))
        with open(os.path.join(SYSTEM.root, "etc/apt/apt.conf.d/99yes"), "w", encoding="ascii") as settings:
            settings.write('APT::Get::Assume-Yes "true";\n')
        SYSTEM.run("apt-get -qq update", alone=False)
        unittest.main(argv=["readme_test"], verbosity=2)
