#!/usr/bin/env python3
"""The picture of the README shows the figures of docs/perf/newest.md. So do its words, which also name revision and class of machine;
the figures of broadcasts are those of docs/perf/README.md."""
import json
import os
import re
import sys
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "util"))
from cluster_perf_lib import overview, papers  # noqa: E402

CURE = "python3 util/cluster_perf_lib/overview.py prov/cluster/docs/perf/newest.md docs/pictures/figures.svg"


def text_of(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def said():
    """What the README says between its picture and the next section."""
    return text_of("README.md").partition("docs/pictures/figures.svg")[2].partition("\n## ")[0]


def between():
    return text_of("prov", "cluster", "docs", "perf", "newest.md").partition("| between nodes |")[2]


def figures():
    """{unit: values}"""
    newest, collectives = text_of("prov", "cluster", "docs", "perf", "newest.md"), text_of("prov", "cluster", "docs", "perf", "README.md")
    rows = re.findall(r"^\| broadcast [^,]+, (ms|us) \| (.*) \|$", collectives, re.MULTILINE)
    times = [float(number) / (1 if unit == "ms" else 1000) for unit, cells in rows for number in re.findall(r"[\d.]+(?=[,:])", cells)]
    return {"us": [float(number) for number in re.findall(r"([\d.]+) us", newest)], "ms": times,
            "s per GB": [float(number) for number in re.findall(r"([\d.]+) s/GB", newest)]}


class Picture(unittest.TestCase):
    def test_it_shows_the_newest_figures(self):
        shown = re.findall(r"<text [^>]*>([^<]*)</text>", text_of("docs", "pictures", "figures.svg"))
        for line in overview.lines(text_of("prov", "cluster", "docs", "perf", "newest.md")):
            self.assertIn(line.name, shown, CURE)
            cells = [line.ours, line.peer, line.times]
            self.assertIn(cells, [shown[at:at + 3] for at in range(len(shown))], f"{line.group}, {line.name}: {CURE}")

    def test_the_readme_names_their_revision(self):
        revision = re.search(r"revision ([0-9a-f]{7,})[.;]", text_of("prov", "cluster", "docs", "perf", "newest.md")).group(1)
        self.assertIn(revision, text_of("README.md"))
        self.assertIn("share a cache", said(), "the class of the machine")

    def test_its_words_have_these_figures_rounded(self):
        measured = figures()
        stated = re.findall(r"(\d[\d.]*) (us|ms|s per GB)\b", said())
        self.assertGreater(len(stated), 8)
        for number, unit in stated:
            digits = len(number.partition(".")[2])
            near = [value for value in measured[unit] if abs(value - float(number)) <= 0.5 * 10 ** -digits + 1e-9]
            self.assertTrue(near, f"{number} {unit} is measured nowhere")

    def test_a_rate_in_words(self):
        self.assertIn("eleven times that of the fastest alternative", said())
        times = re.search(r"^\| rate 8 B x 64 \| .* \| ([\d.]+) \| [^|]* \|$", between(), re.MULTILINE).group(1)
        self.assertEqual(round(float(times)), 11)


class Papers(unittest.TestCase):
    PAGE = os.path.join(TOP, "docs", "papers.md")

    def test_the_page_is_what_cluster_perf_makes_of_its_newest_runs(self):
        runs = papers.read(self.PAGE)
        self.assertEqual(text_of("docs", "papers.md"), papers.render(runs) + "\n", "util/cluster-perf --papers docs/papers.md")
        for report in runs.values():
            del report["results"][::2]
        with self.assertRaisesRegex(ValueError, "incomplete"):
            papers.render(runs)

    def test_a_run_on_one_class_of_machine_leaves_that_on_the_other(self):
        near = next(iter(papers.read(self.PAGE).values()))
        near["cache_line_ns"]["nearest"] = 31.0
        far = json.loads(json.dumps(near))
        far["cache_line_ns"]["nearest"], far["machine"]["revision"] = 110.0, "fa4fa4fa"
        newer = json.loads(json.dumps(near))
        newer["machine"]["revision"] = "0e3e3e3e"
        with tempfile.TemporaryDirectory() as directory:
            page = os.path.join(directory, "page.md")
            for report in (far, near, newer):
                papers.write(page, papers.with_run(papers.read(page), report))
            text = text_of(page)
        for paper in papers.PAPERS:
            part = text.partition(f"## {paper.name}")[2].partition("\n## ")[0]
            self.assertEqual(re.findall(r"^### .* \(revision (\w+)\)$", part, re.MULTILINE), ["0e3e3e3e", "fa4fa4fa"], paper.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
