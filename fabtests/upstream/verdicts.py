"""The verdict on a test, and the table of verdicts."""
import errno
import re
import sys

# Exit statuses; some programs leave out the sign.
SAYS_NOT_OFFERED = tuple((error, 256 - error) for error in (errno.ENODATA, errno.ENOSYS))

LOST_THE_OTHER = tuple(form for error in (errno.ENOTCONN, errno.ECONNRESET) for form in (error, 256 - error))

# UNKNOWN: this version of the programs does not know the line.
PASSED, FAILED, NOT_OFFERED, NOT_RUN, EXCLUDED, UNKNOWN = "pass", "FAIL", "not offered", "not run", "excluded", "unknown"


class Excludes:
    """A file in the form of upstream's *.exclude: a pattern a line, # before remarks."""

    def __init__(self, path):
        self.patterns = []
        if path is not None:
            with open(path, encoding="utf-8") as lines:
                for line in map(str.strip, lines):
                    if line and not line.startswith("#"):
                        self.patterns.append(re.compile(line))

    def match(self, line):
        return any(pattern.search(line) for pattern in self.patterns)


def verdict(kind, statuses, outputs):
    """(verdict, remark) for the exit statuses of all processes of a test; None is one that was killed."""
    if None in statuses:
        return FAILED, "no end in time"
    if kind == "refused":
        return (PASSED, "") if statuses == [errno.ENODATA] else (FAILED, f"exit status {statuses[0]}")
    if any(_all_or_gone(statuses, forms) for forms in SAYS_NOT_OFFERED):
        return NOT_OFFERED, ""
    if any(statuses):
        if any("invalid option" in output or "unrecognized option" in output for output in outputs):
            return UNKNOWN, "no such argument"
        return FAILED, "exit status " + ", ".join(map(str, statuses))
    if kind == "uber":
        return _count_cases(outputs[-1])
    return PASSED, ""


def _all_or_gone(statuses, forms):
    """True if every process says so, or one does and the others have lost it."""
    said = [status for status in statuses if status in forms]
    return bool(said) and all(status in forms + LOST_THE_OTHER for status in statuses)


def _count_cases(output):
    """fi_ubertest tries many cases in one run and counts them by outcome."""
    counts = {"Success": 0, "ENODATA": 0, "ENOSYS": 0, "ERROR": 0}
    for name, number in re.findall(r"(Success|ENODATA|ENOSYS|ERROR)\s*:\s*(\d+)", output):
        counts[name] += int(number)
    remark = f"{counts['Success']} of {sum(counts.values())} cases, {counts['ENODATA']} not offered"
    failed = counts["ERROR"] + counts["ENOSYS"] > 0 or counts["Success"] == 0
    return (FAILED if failed else PASSED), remark


class Table:
    """Prints as it grows and counts at the end."""

    def __init__(self):
        self.counts = {}

    def add(self, line, result, remark="", seconds=0.0, outputs=()):
        self.counts[result] = self.counts.get(result, 0) + 1
        print(f"{line:<58} {result:<11} {seconds:6.1f} s  {remark}")
        if result == FAILED:
            for number, output in enumerate(outputs):
                for text in output.strip().splitlines()[-6:]:
                    print(f"    {'server' if number == 0 else 'client'}: {text}")
        sys.stdout.flush()

    def finish(self):
        print("  ".join(f"{name}: {count}" for name, count in self.counts.items()))
        return 1 if self.counts.get(FAILED) else 0
