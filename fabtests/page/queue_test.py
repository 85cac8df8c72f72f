"""How the page reads the answers of Slurm, slurmrestd and Grid Engine: it finds the owner of each job, whatever the job's name. Fake
programs replace Slurm's, and texts of the real programs stand for those of the others.
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import socketserver
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import doubles

if not doubles.with_packages():
    print("skipped: Starlette, uvicorn or Jinja2 is missing")
    sys.exit(77)

from cluster_page_lib.jobs import gridengine, slurm, slurm_rest  # noqa: E402

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


# Of what slurmrestd says of a job, the fields that are read.
JOB = {"job_id": 77, "user_name": "mallory", "job_state": "FAILED", "node_count": 2, "tasks": 4, "name": "a\n\x1b42", "submit_time": 10,
       "start_time": 11, "end_time": 12, "exit_code": 768, "state_reason": "NonZeroExitCode",
       "job_resources": {"nodes": "node[1-2]", "allocated_nodes": [{"nodename": "node1"}, {"nodename": "node2"}]}}


class SlurmRest(unittest.IsolatedAsyncioTestCase):
    """A server of one answer stands for slurmrestd; page.slurm-rest has the real one."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        path, key = os.path.join(place.name, "socket"), os.path.join(place.name, "key")
        with open(key, "wb") as file:
            file.write(b"k" * 32)
        self.answer, self.asked = (200, {}), []
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                test.asked.append((self.command, self.path, dict(self.headers)))
                status, content = test.answer
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_DELETE = do_GET
            log_message = address_string = lambda *_: ""

        server = socketserver.UnixStreamServer(path, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.settings = types.SimpleNamespace(slurmrestd=path, slurm_jwt_key=key)
        self.queue = slurm_rest.SlurmRestQueue(self.settings)

    async def test_jobs_with_their_owners_and_nodes(self):
        waits = {**JOB, "job_id": 9, "job_state": "PENDING", "name": "b", "job_resources": {}, "end_time": 99, "start_time": 0}
        self.answer = 200, {"errors": [], "jobs": [waits, JOB]}
        failed, queued = await self.queue.jobs()
        self.assertEqual((failed.number, failed.user, failed.name, failed.state, failed.nodes, failed.status, failed.ended),
                         ("77", "mallory", "a??42", "failed", ["node1", "node2"], 3, 12))
        self.assertEqual((queued.number, queued.state, queued.nodes, queued.status, queued.started, queued.ended), ("9", "queued", [], None, 0, 0))

    async def test_a_job_is_cancelled_as_its_user(self):
        await self.queue.cancel(slurm_rest.job_of(JOB), "ole")
        method, path, head = self.asked[0]
        self.assertEqual((method, path, head["X-SLURM-USER-NAME"]), ("DELETE", "/slurm/v0.0.38/job/77", "mallory"))
        signed, _, signature = head["X-SLURM-USER-TOKEN"].rpartition(".")
        self.assertEqual(base64.urlsafe_b64decode(signature + "="), hmac.new(b"k" * 32, signed.encode(), hashlib.sha256).digest())
        said = json.loads(base64.urlsafe_b64decode(signed.partition(".")[2] + "=="))
        self.assertEqual((said["sun"], said["exp"] - said["iat"]), ("mallory", 60))

    async def test_why_it_does_not_work(self):
        for answer, reason in (((500, {"errors": [{"description": "Unable to find\x1b JobId=1", "error": "no"}]}), r"Unable to find\? JobId=1"),
                               ((401, b"Authentication failure"), "Authentication failure"), ((200, b"[]"), r"\[\]"), ((503, {}), "503")):
            self.answer = answer
            with self.assertRaisesRegex(slurm.AgentError, reason):
                await self.queue.jobs()
        self.settings.slurmrestd += "-not"
        with self.assertRaisesRegex(slurm.AgentError, "does not answer at .*socket-not: .*No such file"):
            await self.queue.jobs()
        self.settings.slurm_jwt_key = "/nowhere/key"
        with self.assertRaisesRegex(slurm.AgentError, "/nowhere/key: No such file.*jwt_key"):
            slurm_rest.SlurmRestQueue(self.settings)


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
