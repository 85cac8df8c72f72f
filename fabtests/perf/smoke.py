#!/usr/bin/env python3
"""Runs `cluster-perf --smoke`, `--thresholds`, a little of `--choices`, and in short all that only `--papers` measures. Checks that
the reports are complete and plausible, whatever the figures.

usage: smoke.py BUILD
"""
import json
import os
import subprocess
import sys
import tempfile

_UTIL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util")
sys.path.insert(0, _UTIL)
from cluster_perf_lib import choices, paper_figures, paper_measures, paper_programs, plan, report, runs, thresholds, transports  # noqa: E402
from vcluster_lib import temporary  # noqa: E402

SECONDS_MAX = 250
CHOICES = ["batch", "look", "poll"]  # together they use every measure between nodes, and every kind of sender and receiver
_TOOL = [sys.executable, "-B", os.path.join(_UTIL, "cluster-perf")]


def run(*arguments):
    result = subprocess.run([*_TOOL, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    print(result.stdout, result.stderr, sep="")
    return result


def expected(places):
    """(place, transport, measure, bytes) of everything that must have been measured."""
    smoke = plan.smoke()
    for place in places:
        for name in ("cluster", "tcp") if place == transports.INSIDE else ("cluster/udp", "tcp"):
            for group in smoke.groups:
                yield from ((place, name, item.measure, item.bytes) for item in group.items)
        bare = smoke.bare_inside if place == transports.INSIDE else smoke.bare_between
        yield from ((place, "bare", item.measure, item.bytes) for item in bare)


def faults_of(path, places):
    with open(path, encoding="utf-8") as file:
        figures = json.load(file)
    found = report.faults(figures)
    there = {(entry["place"], entry["transport"], entry["measure"], entry["bytes"]) for entry in figures["results"]}
    found += [f"nothing about {what}" for what in expected(places) if what not in there]
    compared = {(ratio["place"], ratio["peer"]) for ratio in figures["ratios"]}
    found += [f"{place}: no ratio to tcp" for place in places if (place, "tcp") not in compared]
    # The check itself must be able to fail.
    figures["results"][0].pop("median")
    if not report.faults(figures):
        found.append("a report without its first median passes for sound")
    return found


def faults_of_thresholds(build, path):
    """Every size must have been measured both ways, and each way of the provider must get a setting."""
    shown = run("--thresholds", "--repetitions", "1", "--milliseconds", "1", "--build", build, "--json", path)
    if shown.returncode != 0:
        return ["the run of the thresholds"]
    with open(path, encoding="utf-8") as file:
        figures = json.load(file)
    return [f"{place}: no threshold of {way}" for place in figures["settings"]["places"] for way in thresholds.WAYS[place]
            if f"### {way}, {place}" not in shown.stdout or thresholds.threshold(figures, place, way) is None]


def faults_of_choices(build, path):
    """Every way of these questions must have been measured, and the table must have a row for it."""
    shown = run("--choices", ",".join(CHOICES), "--repetitions", "1", "--milliseconds", "1", "--build", build, "--json", path)
    if shown.returncode != 0:
        return ["the run of the choices"]
    with open(path, encoding="utf-8") as file:
        figures = json.load(file)
    found = [f"choices: not measured: {entry}" for entry in figures["skipped"]]
    there = {(entry["transport"], entry["measure"], entry["bytes"]) for entry in figures["samples"]}
    for _, transport, group in choices.turns(choices.chosen(CHOICES), None):
        found += [f"choices: nothing about {transport.name}, {item.measure}" for item in group.items
                  if (transport.name, item.measure, item.bytes) not in there]
    for question in choices.chosen(CHOICES):
        found += [f"choices: no row for {way.label}" for way in question.ways if f"| {way.label}" not in shown.stdout and f"| **{way.label}**" not in shown.stdout]
    return found


def faults_of_papers(build):
    """Each measure must yield figures, from which its tables can be made; what is not installed is no fault."""
    measured = paper_measures.Measures(runs.Runner(os.path.realpath(build), 1, 60), paper_measures.SMOKE, print).all()
    found = []
    for name, of in measured.items():
        found += [] if of["rows"] or of["not_here"] else [f"papers: nothing about {name}: {of['reason']}"]
    figures = paper_figures.Figures({"results": [], "papers": measured})
    for name, make in {**paper_programs.TABLES, "PVM": lambda of: [paper_programs.pvm_line(of)]}.items():
        try:
            make(figures)
        except paper_figures.NotMeasured:
            pass  # said above
        except (KeyError, ValueError, StopIteration, ZeroDivisionError) as fault:
            found.append(f"papers: no table of {name}: {fault!r}")
    return found


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    reason = temporary.unavailable_reason()
    places = [transports.INSIDE] if reason else [transports.INSIDE, transports.BETWEEN]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "report.json")
        if run("--smoke", "--build", arguments[1], "--json", path).returncode != 0:
            print("FAIL: the run")
            return 1
        found = faults_of(path, places)
        markdown = os.path.join(directory, "table.md")
        shown = run("--from", path, "--markdown", markdown)
        if shown.returncode != 0 or "latency 8 B" not in shown.stdout:
            found.append("the report cannot be shown again")
        with open(markdown, encoding="utf-8") as file:
            if "| latency 8 B |" not in file.read():
                found.append("the table in Markdown lacks its first row")
        if not reason:
            found += faults_of_papers(arguments[1])
            found += faults_of_choices(arguments[1], os.path.join(directory, "choices.json"))
            found += faults_of_thresholds(arguments[1], os.path.join(directory, "thresholds.json"))
        refused = run("--smoke", "--build", directory)
        if refused.returncode != 1 or "build first" not in refused.stderr:
            found.append("a build that is not there is not refused with its cure")
    for fault in found:
        print(f"FAIL: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
