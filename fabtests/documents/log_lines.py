"""The headings of man/fi_cluster_messages.7, and the lines that they stand for.

The page has examples of names and numbers: a real line has others. What stands for dots differs, too.
"""
import os
import re

MANUAL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "man", "fi_cluster_messages.7")
NAMES = re.compile(r"\[[0-9a-f:]+\]:\d+|\d+\.\d+\.\d+\.\d+(?::\d+)?|eth\d+|/\S+|\b\d+(?:\.\d+)?\b")


def headings():
    with open(MANUAL, encoding="utf-8") as manual:
        lines = manual.read().split(".SH LOG LINES", 1)[1]
    return [text.replace("\\-", "-") for text in re.findall(r"^\.T[PQ]\n\.I (.*)$", lines, re.MULTILINE)]


def pattern_of(heading):
    """A regular expression of the beginning of each line that the heading stands for."""
    return re.compile(".*".join(r"\S+".join(map(re.escape, NAMES.split(part))) for part in heading.split("...")))
