#!/usr/bin/env python3
"""Sums up the results of all builds of a check, and ends with skips, slow tests and failures.

    report.py [--root] BUILD=RESULTS=AGAIN=GTEST...

RESULTS is the JUnit file of ctest for a build, AGAIN that of a second run of what failed, GTEST the directory where test
programs of GoogleTest wrote what their single tests did (those count instead of the program). A test that failed and
passed when repeated is unsteady. With --root the machine can make virtual nodes, so only skips that ALLOWED_SKIPS
explains are accepted; others count as failures. Prints "RUN SKIPPED UNSTEADY FAILED" as its last line. A missing file
counts as no test run.
"""
import argparse
import glob
import os
import re
import xml.etree.ElementTree
from dataclasses import dataclass, field

LINES = 40  # shown of the output of each failure; the log that util/check names has all of it
SLOWEST = 10

# Permitted skips on a machine with root, by test and reason: these machines cannot install what is missing.
ALLOWED_SKIPS = [
    ("LinkConformance|Link/", "loopback takes longer frames"),  # a link on lo refuses no frame
    ("LinkConformance|Link/", "loopback has no cable"),
    ("LinkConformance.*/verbs_",  # what only Ethernet, UDP or one host can do
     "queue pairs?|keep-alives are for the UDP port|the device decides|each frame comes alone"),
    (r"mpi\.(openmpi5|mpich|intel)\.|load\.(mpich|openmpi|impi)", "PyPI|cannot be had|not available"),
    # Sanitizers of this compiler and threads after fork() exclude each other; the release build runs these tests.
    ("KeepAliveResponderTest|RegionDirectoryTest|MappedRegionTest",
     "AddressSanitizer forks|ThreadSanitizer allows no threads"),
    ("ExhaustedListenerTest|DoorbellTest", "UndefinedBehaviorSanitizer looks at types through a pipe"),
    ("", "no hardware|instruction set|not permitted here"),
]


@dataclass
class Case:
    build: str
    name: str
    seconds: float
    status: str  # passed, failed, skipped
    output: str = ""


@dataclass
class Build:
    name: str
    cases: list = field(default_factory=list)
    failed_again: set = field(default_factory=set)
    repeated: bool = False


def cases_of(build, path):
    """The tests that ctest ran, from its JUnit file."""
    try:
        suite = xml.etree.ElementTree.parse(path).getroot()
    except (FileNotFoundError, xml.etree.ElementTree.ParseError):
        return []
    verdicts = {"fail": "failed", "notrun": "skipped", "disabled": "skipped"}
    return [Case(build, case.get("name"), float(case.get("time") or 0), verdicts.get(case.get("status"), "passed"),
                 case.findtext("system-out") or "(no output)") for case in suite.findall("testcase")]


def gtest_cases(build, directory):
    """The single tests of each program of GoogleTest: name of the program's test in ctest -> its tests."""
    found = {}
    for path in glob.glob(os.path.join(directory, "*.xml")):
        try:
            root = xml.etree.ElementTree.parse(path).getroot()
        except xml.etree.ElementTree.ParseError:
            continue  # the program ended in the middle of a test: ctest tells how
        cases = []
        for case in root.iter("testcase"):
            if case.get("result") == "suppressed" or case.get("status") == "notrun":
                continue
            skipped = case.find("skipped")
            status = "failed" if case.find("failure") is not None else "passed" if skipped is None else "skipped"
            reason = "" if skipped is None else (skipped.get("message") or skipped.text or "")
            cases.append(Case(build, f"{case.get('classname')}.{case.get('name')}", float(case.get("time") or 0),
                              status, reason.strip().splitlines()[-1] if reason.strip() else "no reason given"))
        found[os.path.basename(path)[: -len(".xml")]] = cases
    return found


def read(argument):
    name, results, again, gtest = argument.split("=")
    build = Build(name, cases_of(name, results))
    repeated = cases_of(name, again)
    build.repeated = bool(repeated)
    build.failed_again = {case.name for case in repeated if case.status == "failed"}
    return build, gtest_cases(name, gtest)


def reason_of(skip):
    lines = [line for line in skip.output.strip().splitlines() if line.strip()]
    return lines[-1][:160] if lines else "no reason given"


def is_allowed(skip):
    return any(re.search(name, skip.name) and re.search(reason, reason_of(skip)) for name, reason in ALLOWED_SKIPS)


def show(verdict, cases):
    for case in cases:
        print(f"\n-- {verdict} in {case.build}: {case.name}")
        print("\n".join(line[:200] for line in case.output.strip().splitlines()[-LINES:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", action="store_true", help="skips need a reason that ALLOWED_SKIPS knows")
    parser.add_argument("builds", nargs="*", metavar="BUILD=RESULTS=AGAIN=GTEST")
    options = parser.parse_args()
    run = 0
    skips, unsteady, failed = [], [], []
    for build, programs in map(read, options.builds):
        single = {case.name: programs.get(case.name, []) for case in build.cases}
        every = [case for outer in build.cases for case in (single[outer.name] or [outer])]
        run += len(every)
        skips += [case for case in every if case.status == "skipped"]
        for case in build.cases:
            if case.status == "failed":
                passed_now = build.repeated and case.name not in build.failed_again
                (unsteady if passed_now else failed).append(case)
        slowest = sorted(every, key=lambda case: -case.seconds)[:SLOWEST]
        if slowest:
            print(f"\n-- slowest in {build.name}: " + ", ".join(f"{case.name} {case.seconds:.0f} s" for case in slowest))
    if skips:
        print("\n-- skipped")
        for case in skips:
            print(f"{case.build}: {case.name}: {reason_of(case)}")
    unexplained = [case for case in skips if options.root and not is_allowed(case)]
    show("unsteady (passed when repeated)", unsteady)
    show("failed", failed)
    show("skipped though this machine could run it", unexplained)
    print(run, len(skips), len(unsteady), len(failed) + len(unexplained))


if __name__ == "__main__":
    main()
