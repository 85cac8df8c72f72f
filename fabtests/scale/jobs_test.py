#!/usr/bin/env python3
"""What jobs.py makes of jobs that end, fail, or do not end. No job runs."""
import contextlib
import io
import sys
import unittest
from unittest import mock

import jobs

MEASURES = "alltoall_8_us 900 300\nalltoall_4096_us 2000 800\n"
WHOLE = MEASURES + "barrier_us 90 30\nallreduce_8_us 80 20\nstarted 7.5\nkilobytes 4000 5000\nring_kilobytes 2000 3000\ndescriptors 30 37\nsockets 10 18\nPASS mpi_scale: 2 ranks\n"
COUNTED = {"endpoints": 2, "frames_sent": 70, "frames_retransmitted": 3}


class Jobs(unittest.TestCase):
    """`launch` answers each job in turn with its output, or with the reason why it does not end."""

    def run_jobs(self, outputs, *words):
        self.launched = []

        def launch(job, _):
            self.launched.append(job.path)
            output = outputs[job.path].pop(0) if isinstance(outputs[job.path], list) else outputs[job.path]
            if output != WHOLE:
                self.clock.return_value += job.seconds
            return 0 if output == WHOLE else 143, output, COUNTED if job.path == "cluster" else {"endpoints": 0}

        self.clock = mock.Mock(return_value=0.0)
        nodes = mock.Mock(require=lambda _: None, make=mock.Mock(side_effect=self.make))
        text = io.StringIO()
        with mock.patch.object(jobs.run_mpi, "launch", launch), mock.patch.object(jobs.run_mpi, "virtual_nodes", nodes), \
                mock.patch.object(jobs.time, "time", self.clock), contextlib.redirect_stdout(text), \
                mock.patch.object(sys, "argv", ["jobs.py", "--provider", "/p", "--program", "/p/mpi_scale", "--forms", "2x1", *words]):
            self.status = jobs.main()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.getvalue().splitlines() if line.startswith("| ")]
        return [dict(zip(rows[0], row)) for row in rows if row[0] != "form"]

    @staticmethod
    def make(_nodes, suffix):
        if suffix == "-9x9":
            raise RuntimeError("no space")
        return mock.Mock()

    def test_jobs_that_end(self):
        cluster, tcp = self.run_jobs({"cluster": WHOLE, "tcp": WHOLE})
        self.assertEqual(self.status, 0)
        self.assertEqual(self.launched, ["cluster", "tcp"] * 2)
        self.assertEqual((cluster["way"], cluster["start-up s"], cluster["4 KB"], cluster["KB"], cluster["of rings"]),
                         ("cluster", "7.5", "800", "5000", "3000"))
        self.assertEqual((cluster["retransmitted"], cluster["ring full"], tcp["retransmitted"]), ("3", "0", "-"))

    def test_a_job_that_does_not_end_keeps_what_it_printed_and_gets_no_further_turn(self):
        cluster, _ = self.run_jobs({"cluster": MEASURES, "tcp": WHOLE})
        self.assertEqual(self.status, 1)
        self.assertEqual(self.launched, ["cluster", "tcp", "tcp"])
        self.assertEqual((cluster["4 KB"], cluster["barrier"]), ("800", "-"))

    def test_what_tcp_cannot_do_is_no_failure(self):
        _, tcp = self.run_jobs({"cluster": WHOLE, "tcp": ""})
        self.assertEqual(self.status, 0)
        self.assertEqual(tcp["4 KB"], "-")

    def test_a_form_without_nodes_does_not_end_the_others(self):
        rows = self.run_jobs({"cluster": WHOLE, "tcp": WHOLE}, "--forms", "9x9,2x1")
        self.assertEqual(self.status, 1)
        self.assertEqual([row["form"] for row in rows], ["2x1", "2x1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
