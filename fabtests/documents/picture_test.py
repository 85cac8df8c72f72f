#!/usr/bin/env python3
"""The picture of the README shows the figures of docs/perf/newest.md, and the README names the revision they are of."""
import os
import re
import sys
import unittest

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "util"))
from cluster_perf_lib import overview  # noqa: E402

CURE = "python3 util/cluster_perf_lib/overview.py prov/cluster/docs/perf/newest.md docs/pictures/figures.svg"


def text_of(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


class Picture(unittest.TestCase):
    def test_it_shows_the_newest_figures(self):
        shown = re.findall(r"<text [^>]*>([^<]*)</text>", text_of("docs", "pictures", "figures.svg"))
        for line in overview.lines(text_of("prov", "cluster", "docs", "perf", "newest.md")):
            self.assertIn(line.name, shown, CURE)
            cells = [line.ours, line.peer, line.times]
            self.assertIn(cells, [shown[at:at + 3] for at in range(len(shown))], f"{line.place}, {line.name}: {CURE}")

    def test_the_readme_names_their_revision(self):
        revision = re.search(r"revision ([0-9a-f]{7,})\.", text_of("prov", "cluster", "docs", "perf", "newest.md")).group(1)
        self.assertIn(revision, text_of("README.md"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
