#!/usr/bin/env python3
"""Adds up what ctest wrote (JUnit files) and repeats, last of all, what the tests that failed had to say.

    report.py NAME=FILE...

The end of a log is what people see first, and sometimes all that is kept of it: so the failures stand there, each
with the end of its output. Prints "RUN SKIPPED" as its last line. A file that is missing (nothing was run) counts as
nothing.
"""
import sys
import xml.etree.ElementTree

LINES = 40  # of each failure; the complete output is in the log that util/check names


def failures(file):
    """The numbers of tests run and skipped, and (name, output) of each that failed."""
    try:
        suite = xml.etree.ElementTree.parse(file).getroot()
    except (FileNotFoundError, xml.etree.ElementTree.ParseError):
        return 0, 0, []
    cases = suite.findall("testcase")
    failed = [(case.get("name"), case.findtext("system-out") or "(no output)")
              for case in cases if case.get("status") == "fail"]
    return len(cases), sum(case.get("status") in ("notrun", "disabled") for case in cases), failed


def main():
    run = skipped = 0
    for argument in sys.argv[1:]:
        build, _, file = argument.partition("=")
        ran, left_out, failed = failures(file)
        run, skipped = run + ran, skipped + left_out
        for name, output in failed:
            print(f"\n-- failed in {build}: {name}")
            print("\n".join(line[:200] for line in output.strip().splitlines()[-LINES:]))
    print(run, skipped)


if __name__ == "__main__":
    main()
