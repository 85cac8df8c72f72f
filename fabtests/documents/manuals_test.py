#!/usr/bin/env python3
"""Manuals and commands say the same: each option of `--help` stands in the manual, each option in the manual in a `--help`.

    manuals_test.py --commands DIRECTORY...        where the commands are; the first that has one counts
"""
import argparse
import glob
import os
import re
import subprocess
import unittest

MAN = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "man")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
# Options of other commands that a manual speaks of.
OTHERS = {"cluster-page": {"--agents"}, "clusterd": {"--agents"}, "cluster-perf": {"--for"}, "vcluster": {"--mca", "--rsh"}}
HELP = {"-h", "--help"}
OPTIONS = None


def manual(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r'^\.\\".*$', "", text, flags=re.MULTILINE)
    return text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "").replace("\\fP", "")


def said(*words):
    found = [path for path in (os.path.join(folder, words[0]) for folder in OPTIONS.commands) if os.access(path, os.X_OK)]
    if not found:
        raise AssertionError(f"no {words[0]} in {', '.join(OPTIONS.commands)}")
    return subprocess.run([found[0], *words[1:], "--help"], capture_output=True, text=True, check=True, timeout=60,
                          env={**os.environ, "COLUMNS": "200"}).stdout


def listed(text):
    """The options that a help lists: those at the beginning of its lines, with their other names."""
    heads = re.findall(r"^ +(--?[a-zA-Z][^ \n]*(?:(?:, | )-?-[a-zA-Z][^ \n]*| [A-Z{\[]\S*)*)", text, re.MULTILINE)
    return {option for head in heads for option in OPTION.findall(head)}


def options_of(command):
    text = said(command)
    commands = re.search(r"^usage: \S+ \[-h\] COMMAND \.\.\.$", text, re.MULTILINE)
    parts = re.findall(r"^    ([a-z]+) ", text, re.MULTILINE) if commands else []
    return listed(text).union(*(listed(said(command, part)) for part in parts)) - HELP


class Manuals(unittest.TestCase):
    pass


def add_case(path):
    command = os.path.basename(path).rpartition(".")[0]

    def case(self):
        mentioned, offered = set(OPTION.findall(manual(path))), options_of(command)
        self.assertGreater(len(offered), 2, "the help is not understood")
        self.assertEqual(sorted(offered - mentioned), [], f"in {command} --help, not in its manual")
        unknown = mentioned - offered - HELP - OTHERS.get(command, set())
        self.assertEqual(sorted(option for option in unknown if option.startswith("--")), [],
                         f"in the manual of {command}, not in its --help")

    setattr(Manuals, "test_" + command.replace("-", "_"), case)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", required=True)
    OPTIONS = parser.parse_args()
    for manual_path in sorted(glob.glob(os.path.join(MAN, "*.[18]"))):
        add_case(manual_path)
    unittest.main(argv=["manuals_test"], verbosity=2)
