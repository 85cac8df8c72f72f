#!/usr/bin/env python3
"""What users see of a program that measures, checks or builds: its progress, and why it ended."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))

from cluster_lib import build  # noqa: E402
from cluster_perf_lib import runs  # noqa: E402
from cluster_perf_lib.errors import Skipped  # noqa: E402
from cluster_perf_lib.processes import Child  # noqa: E402


class Place:
    """Its mpirun is a shell: the first of the arguments is what that runs."""

    @staticmethod
    def mpirun(words):
        return ["sh", "-c", words[0]]


class Transport:
    arguments = ()


def ended(script):
    child = Child(["sh", "-c", script], None)
    child.finish(20)
    return child.failure_reason()


class Children(unittest.TestCase):
    def test_a_frame_of_dashes_is_no_reason(self):
        self.assertEqual(ended("echo '-----' >&2; echo 'no slots' >&2; echo >&2; echo '  -----' >&2; exit 4"),
                         "sh ended with status 4: no slots")

    def test_a_job_without_output(self):
        self.assertEqual(ended("exit 4"), "sh ended with status 4: no output")

    def test_a_job_that_mpirun_has_ended(self):
        original, runs.transports.environment = runs.transports.environment, lambda *_: None
        self.addCleanup(setattr, runs.transports, "environment", original)
        runner = runs.Runner("/nowhere", 1, 90)
        with self.assertRaisesRegex(Skipped, "^no end within 30 s$"):
            runner.mpirun(Place, Transport, ["echo killed >&2; exit 110"], 30, [])
        self.assertEqual(runner.mpirun(Place, Transport, ["echo PASS"], 30, []), ["PASS"])

    def test_a_build_shows_that_it_goes_on(self):
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(io.StringIO()) as said:
            log, gate = os.path.join(place, "log"), os.path.join(place, "gate")
            os.mkfifo(gate)
            # The command waits until its first line was shown: _progress, which shows it, opens the gate.
            shown, build._progress = build._progress, lambda text: (shown(text), gate_opens(gate, text))
            self.addCleanup(setattr, build, "_progress", shown)
            status = build.logged(["sh", "-c", f"echo '[1/2] first'; cat {gate} >/dev/null; echo '[2/2] last'; exit 3"], log, 0.05)
            with open(log, encoding="utf-8") as file:
                self.assertEqual(file.read().splitlines(), ["[1/2] first", "[2/2] last"])
        self.assertEqual(status, 3)
        self.assertIn("   [1/2] first\n", said.getvalue())

    def test_a_build_repeats_no_line(self):
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(io.StringIO()) as said:
            build.logged(["sh", "-c", "echo '[1/1] long'; sleep 1"], os.path.join(place, "log"), 0.05)
        lines = said.getvalue().splitlines()
        self.assertEqual(lines.count("   [1/1] long"), 1)
        self.assertRegex(lines[-1], r"^   \.\.\. for \d s$")


def gate_opens(gate, text):
    if "first" in text:
        with contextlib.suppress(OSError):
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))  # OSError: the command is past it, or not there yet


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
