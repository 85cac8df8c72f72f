"""How the page reads the answers of Slurm and of Grid Engine: it finds the owner of each job, whatever the job's name. Fake programs
replace Slurm's, and texts of the real programs stand for Grid Engine's.
"""
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

import doubles

if not doubles.with_packages():
    print("skipped: Starlette, uvicorn or Jinja2 is missing")
    sys.exit(77)

from cluster_page_lib.jobs import gridengine, slurm  # noqa: E402

# Prints as squeue does: the fields of the format, of the environment or an option, and names as they are.
SQUEUE = """#!{python} -B
import json, os, sys
form = next((word.partition("=")[2] for word in sys.argv if word.startswith("--format=")), os.environ.get("SQUEUE_FORMAT"))
assert form and "SQUEUE_STATES" not in os.environ
with open("{place}/jobs.json", encoding="utf-8") as file:
    for number, user, name in json.load(file):
        text = form
        for mark, value in zip(("%i", "%u", "%T", "%D", "%C", "%V", "%S", "%e", "%r", "%N", "%j"),
                               (number, user, "RUNNING", "1", "1", "2026-01-01T00:00:00", "2026-01-01T00:00:00", "N/A", "None", "node1", name)):
            text = text.replace(mark, value, 1)
        print(text)
"""
SCANCEL = """#!/bin/sh
echo "$@" >> {place}/cancelled
"""
FORGED = "a\n42|mallory|RUNNING|1|1|2026-01-01T00:00:00|2026-01-01T00:00:00|N/A|None|node1|b"


class SlurmQueue(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        for name, text in (("squeue", SQUEUE), ("scancel", SCANCEL)):
            with open(os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o700), "w", encoding="utf-8") as file:
                file.write(text.replace("{place}", self.place).replace("{python}", sys.executable))
        environment = mock.patch.dict(os.environ, {"PATH": f"{self.place}:{os.environ['PATH']}", "SQUEUE_STATES": "RUNNING"})
        environment.start()
        self.addCleanup(environment.stop)
        self.queue = slurm.SlurmQueue(None)

    def path(self, name):
        return os.path.join(self.place, name)

    def running(self, *jobs):
        with open(self.path("jobs.json"), "w", encoding="utf-8") as file:
            json.dump(jobs, file)

    async def test_a_name_makes_no_job(self):
        self.running(("77", "mallory", FORGED), ("42", "alice", "payroll"), ("7_[1-3]", "alice", "array"), ("9", "bob", "|a|b|"))
        self.assertEqual([(job.number, job.user) for job in await self.queue.jobs()], [("77", "mallory"), ("42", "alice"), ("9", "bob")])
        names = {job.number: job.name for job in await self.queue.jobs()}
        self.assertEqual((names["42"], names["9"], names["77"]), ("payroll", "|a|b|", FORGED.replace("\n", "?")))
        self.assertEqual((await self.queue.job("42")).user, "alice")

    async def test_what_an_earlier_question_held_is_of_no_use_and_no_user_can_see_it(self):
        self.running()
        formats, real = [], slurm._run  # pylint: disable=protected-access

        async def watched(*words, **options):
            self.assertFalse([word for word in words if "format" in word.lower()])
            formats.append(options["env"]["SQUEUE_FORMAT"])
            return await real(*words, **options)

        with mock.patch.object(slurm, "_run", watched), mock.patch.object(slurm, "FRESH_SECONDS", -1):
            await self.queue.jobs()
            self.running(("77", "mallory", "a\n" + formats[0].replace("%i", "42").replace("%u", "mallory").replace("%D", "1")))
            self.assertEqual([job.number for job in await self.queue.jobs()], ["77"])
        self.assertNotEqual(*formats)

    async def test_only_a_job_of_its_user_is_cancelled(self):
        self.running(("42", "alice", "payroll"))
        await self.queue.cancel(await self.queue.job("42"), "ole")
        with open(self.path("cancelled"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "--user=alice 42\n")


# As qstat -g t -xml says it: of a job on two nodes, and of one that waits.
QSTAT = """<?xml version='1.0'?>
<job_info  xmlns:xsd="http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd">
  <queue_info>
    <job_list state="running"><JB_job_number>7</JB_job_number><JB_name>try</JB_name><JB_owner>alice</JB_owner><state>r</state>
      <JAT_start_time>2026-11-29T02:06:35</JAT_start_time><queue_name>all.q@node2</queue_name><slots>1</slots></job_list>
    <job_list state="running"><JB_job_number>7</JB_job_number><JB_name>try</JB_name><JB_owner>alice</JB_owner><state>r</state>
      <JAT_start_time>2026-11-29T02:06:35</JAT_start_time><queue_name>all.q@node3</queue_name><slots>1</slots></job_list>
  </queue_info>
  <job_info>
    <job_list state="pending"><JB_job_number>9</JB_job_number><JB_name>NAME</JB_name><JB_owner>mallory</JB_owner><state>Eqw</state>
      <JB_submission_time>2026-11-29T02:06:43</JB_submission_time><queue_name></queue_name><slots>9</slots></job_list>
  </job_info>
</job_info>
"""
QACCT = """==============================================================
qname        all.q
hostname     node2
owner        alice
jobname      try
jobnumber    7
failed       100 : assumedly after job
exit_status  137
slots        2
"""


class GridEngine(unittest.TestCase):
    def test_jobs_with_their_owners_and_nodes(self):
        for name in ("a%lt;b&gt;&amp;", "\x01\x1b\x0b", "\ud800"):
            jobs = gridengine.open_jobs(QSTAT.replace("NAME", name).encode(errors="surrogatepass"))
            self.assertEqual([(job.number, job.user, job.state, job.nodes, job.wanted) for job in jobs.values()],
                             [("7", "alice", "running", ["node2", "node3"], 2), ("9", "mallory", "queued", [], 9)], name)
        self.assertIn("could not start it", jobs["9"].reason)
        with self.assertRaises(slurm.AgentError):
            gridengine.open_jobs(b"<job_info>")

    def test_the_account_of_an_ended_job(self):
        entry = gridengine.account(QACCT)
        self.assertEqual((entry["owner"], entry["jobnumber"], entry["exit_status"], entry["slots"]), ("alice", "7", "137", "2"))
        self.assertEqual(gridengine.account(QACCT + "owner mallory\n")["owner"], "alice")

    def test_names_that_it_allows(self):
        self.assertEqual([gridengine.called(name) for name in ("first try", "2 b", "a+b-c.d_e")], ["first_try", "j_2_b", "a+b-c.d_e"])

    def test_a_script_is_not_ended_by_its_own_lines(self):
        text = gridengine._wrapped("#!/bin/sh\nend-0\n").decode()  # pylint: disable=protected-access
        end = text.partition("<<'")[2].partition("'")[0]
        self.assertEqual((len(end), text.count(f"\n{end}\n")), (36, 1))


if __name__ == "__main__":
    unittest.main()
