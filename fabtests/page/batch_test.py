"""Jobs of the page through Slurm, slurmrestd or Grid Engine, on three virtual nodes: MPI over the provider, a script, a machine, cancel, drain.

    batch_test.py --queue slurm|slurm-rest|gridengine --provider DIRECTORY --program FILE
"""
import argparse
import html
import re
import sys
import time
import unittest

import doubles

if not doubles.with_packages("starlette", "uvicorn", "jinja2", "pam", "psutil"):
    print("skipped: Python packages are missing (util/setup --for page)")
    sys.exit(77)

import nodes_with_page  # noqa: E402

OPTIONS = argparse.Namespace(queue="", provider="", program="")
FORM = {"name": "2 of a queue", "nodes": "2", "ranks": "4", "minutes": "5", "program": "", "arguments": "", "script": "", "environment": ""}


class Batch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = nodes_with_page.Nodes(3, OPTIONS.provider, OPTIONS.program, f"--{OPTIONS.queue}")
        cls.addClassCleanup(cls.nodes.close)

    def browser(self, user):
        found = doubles.Browser(int(self.nodes.address.rstrip("/").rpartition(":")[2]))
        self.assertEqual(found.log_in(user, self.nodes.password).status, 303)
        return found

    def until(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)

    def state(self, browser, job):
        return re.search(r'id="job-state"[^>]* class="state (\w+)"', browser.get(job).text).group(1)

    def run_to_end(self, browser, **fields):
        job = browser.post("/jobs/new", {**FORM, **fields}).headers["location"]
        self.until(lambda: self.state(browser, job) not in ("queued", "running"), "the end of the job")
        return self.state(browser, job), self.output(browser, job), job

    @staticmethod
    def output(browser, job):
        """All of it, piece by piece."""
        found, behind = "", "0"
        while True:
            text = browser.get(f"{job}/output?from={behind}").text
            piece = re.search(r"<pre[^>]*>(.*?)</pre>", text, re.S)
            if not piece:
                return html.unescape(found)
            found, behind = found + piece.group(1), re.search(r"from=(\d+)", text).group(1)

    def test_an_mpi_job_runs_over_the_provider(self):
        state, text, job = self.run_to_end(self.browser("submit"), program=self.nodes.program, arguments="3 50",
                                           environment="FI_LOG_LEVEL=info\nFI_LOG_PROV=cluster")
        self.assertEqual(state, "ended")
        self.assertTrue("done: 4 ranks, from node1" in text, text[-1000:])
        self.assertTrue("Opened fabric" in text and ":cluster:" in text, "the log of the provider")
        self.assertEqual(self.browser("look").get(job + "/output").status, 404)

    def test_words_and_scripts(self):
        sam = self.browser("submit")
        state, text, _ = self.run_to_end(sam, nodes="1", ranks="1", program="/bin/echo", arguments="'; touch x' $(id)")
        self.assertEqual((state, text), ("ended", "; touch x $(id)\n"))
        state, text, job = self.run_to_end(sam, nodes="1", ranks="1", script="#!/bin/sh\r\nid -un; echo $FI_PROVIDER; exit 3\r\n")
        self.assertEqual((state, text), ("failed", "submit\ncluster\n"))
        self.assertIn('<dd id="status">3</dd>', sam.get(job).text)

    def test_cancel_and_drain(self):
        sam, ole = self.browser("submit"), self.browser("operate")
        job = sam.post("/jobs/new", {**FORM, "program": self.nodes.program, "arguments": "100000 100"}).headers["location"]
        self.until(lambda: "round 2 of" in sam.get(job + "/output").text, "output as it comes")
        self.assertEqual(sam.post(job + "/cancel", {}).status, 303)
        self.until(lambda: self.state(sam, job) == "cancelled", "the end of the job")
        self.assertEqual(ole.post("/node/node3/order", {"order": "drain", "reason": "new disk"}).status, 303)
        self.until(lambda: self.is_drained("node3"), "the queue drains it, too")
        self.assertEqual(ole.post("/node/node3/order", {"order": "resume"}).status, 303)
        self.until(lambda: not self.is_drained("node3"), "the queue takes it back")

    def is_drained(self, node):
        if OPTIONS.queue != "gridengine":
            return "drain" in self.nodes.cluster.run(1, "sinfo", "--noheader", f"--nodes={node}", "--format=%T")
        said = self.nodes.cluster.run(1, "qstat", "-f", "-q", f"all.q@{node}")
        line = next(line.split() for line in said.splitlines() if line.startswith(f"all.q@{node}"))
        return "d" in "".join(line[5:])  # the states follow the architecture

    def test_a_job_on_a_machine_and_what_is_known_of_it(self):
        sam = self.browser("submit")
        for node in ("node3", "node2"):
            self.assertEqual(sam.post("/choose", {"node": node}).status, 303)
        self.assertEqual(sam.post("/machines/save", {"name": "lab"}).status, 303)
        state, text, job = self.run_to_end(sam, ranks="2", machine="lab", program="/bin/hostname")
        self.assertEqual((state, sorted(text.split())), ("ended", ["node2", "node3"]))
        page = sam.get(job).text
        self.assertIn('<code id="command">/bin/hostname ', page)
        self.assertIn('<dd id="status">0</dd>', page)
        self.until(lambda: "2 of a queue" in html.unescape(sam.get("/accounts").text).replace("j_2_of_a_queue", "2 of a queue"), "the account of the job")
        self.assertEqual(sam.post("/machines/remove", {"name": "lab"}).status, 303)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queue", choices=("slurm", "slurm-rest", "gridengine"), required=True)
    parser.add_argument("--provider", required=True)
    parser.add_argument("--program", required=True)
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    nodes_with_page.require(*{"slurm": ("slurmctld", "slurmd", "munged"), "slurm-rest": ("slurmctld", "slurmd", "munged", "slurmrestd"),
                              "gridengine": ("sge_qmaster", "sge_execd", "qsub")}[OPTIONS.queue])
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
