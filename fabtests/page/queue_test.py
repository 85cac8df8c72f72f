"""How the page reads Slurm's answers: it finds the owner of each job, whatever the job's name. Fake programs replace
Slurm's.
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

from cluster_page_lib.jobs import slurm  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
