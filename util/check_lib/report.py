#!/usr/bin/env python3
"""Adds up what ctest wrote (JUnit files) and repeats, last of all, what the tests that failed had to say.

    report.py NAME=FILE=AGAIN...

FILE tells of all tests of a build, AGAIN of a second run of those that failed. The end of a log is what people see
first, and sometimes all that is kept of it: so the failures stand there, each with the end of its output, behind the
unsteady ones, which failed only the first time. Prints "RUN SKIPPED UNSTEADY FAILED" as its last line. A file that is
missing (nothing was run) counts as nothing.
"""
import sys
import xml.etree.ElementTree

LINES = 40  # of each failure; the complete output is in the log that util/check names


def outcome(file):
    """The numbers of tests run and skipped, and the output of each that failed, by its name."""
    try:
        suite = xml.etree.ElementTree.parse(file).getroot()
    except (FileNotFoundError, xml.etree.ElementTree.ParseError):
        return 0, 0, {}
    cases = suite.findall("testcase")
    failed = {case.get("name"): case.findtext("system-out") or "(no output)"
              for case in cases if case.get("status") == "fail"}
    return len(cases), sum(case.get("status") in ("notrun", "disabled") for case in cases), failed


def show(verdict, build, failed):
    for name, output in failed.items():
        print(f"\n-- {verdict} in {build}: {name}")
        print("\n".join(line[:200] for line in output.strip().splitlines()[-LINES:]))


def main():
    run = skipped = unsteady = 0
    failures = []
    for argument in sys.argv[1:]:
        build, file, again = argument.split("=")
        ran, left_out, failed = outcome(file)
        repeated, _, failed_again = outcome(again)
        run, skipped = run + ran, skipped + left_out
        recovered = {name: output for name, output in failed.items() if repeated and name not in failed_again}
        unsteady += len(recovered)
        show("unsteady (passed when repeated)", build, recovered)
        failures.append((build, failed_again if repeated else failed))
    for build, failed in failures:
        show("failed", build, failed)
    print(run, skipped, unsteady, sum(len(failed) for _, failed in failures))


if __name__ == "__main__":
    main()
