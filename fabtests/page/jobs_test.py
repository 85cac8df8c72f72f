"""Jobs of the page: valid requests, how the page's own queue assigns nodes, and the pages about jobs."""
import asyncio
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

import doubles

if not doubles.with_packages():
    print("skipped: Starlette, uvicorn or Jinja2 is missing")
    sys.exit(77)

from cluster_page_lib import cluster  # noqa: E402
from cluster_page_lib.jobs import job, own_queue  # noqa: E402
from clusterd_lib import job_group  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402

USER = "daemon"
GOOD = {"name": "first try", "nodes": "2", "ranks": "4", "minutes": "5", "program": "/bin/echo", "arguments": "a 'b c'",
        "environment": "A=1\nB=x=y", "script": ""}


def form(**changed):
    return {**GOOD, **changed}


class Requests(unittest.TestCase):
    def test_words_are_words(self):
        request = job.read(form(arguments="'; touch x' $(id) `id` > y"))
        self.assertEqual(request.words, ["/bin/echo", "; touch x", "$(id)", "`id`", ">", "y"])
        self.assertEqual(request.environment, {"A": "1", "B": "x=y"})

    def test_what_makes_no_sense_is_refused(self):
        for changed in ({"name": "<script>alert(1)</script>"}, {"name": ""}, {"name": "-x"}, {"name": "a\nb"}, {"name": "x" * 65},
                        {"nodes": "0"}, {"nodes": "-1"}, {"nodes": "1e9"}, {"ranks": "1"}, {"ranks": "٣"}, {"minutes": ""},
                        {"program": "echo"}, {"program": "/bin/e\ncho"}, {"program": ""}, {"arguments": "'"},
                        {"environment": "1A=x"}, {"environment": "LD PRELOAD=x"}, {"environment": "=x"},
                        {"script": "#!/bin/sh\n"}, {"program": "", "script": "echo"}, {"program": "", "script": "#!/" + "x" * 100_001}):
            with self.assertRaises(job.BadRequest, msg=str(changed)[:80]):
                job.read(form(**changed))


@unittest.skipUnless(os.geteuid() == 0, "only root starts jobs as their users")
class OwnQueue(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.agent = doubles.Agent(3)
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        os.chmod(state.name, 0o711)
        self.settings = types.SimpleNamespace(state=state.name, provider="/nowhere")
        own_queue.LOOK_SECONDS = 0.05
        cluster.FRESH_SECONDS = 0.0
        self.queue = self.new_queue()
        await self.queue.start()

    async def asyncTearDown(self):
        await self.queue.stop()

    def new_queue(self):
        return own_queue.OwnQueue(self.settings, cluster.Cluster(self.agent.ask), mpirun="/bin/echo")

    async def until(self, number, *states):
        for _ in range(2000):
            found = await self.queue.job(number)
            if found.state in states:
                return found
            await asyncio.sleep(0.005)
        self.fail(f"job {number} is {found}")

    async def text(self, found):
        return (await self.queue.output(found, 0))[0].decode()

    async def submit(self, **changed):
        return await self.queue.submit(USER, job.read(form(**changed)))

    async def script(self, text, **changed):
        return await self.submit(program="", arguments="", script=text, **changed)

    async def test_no_shell_sees_a_field(self):
        number = await self.submit(arguments="'; touch x' $(id)")
        ended = await self.until(number, "ended", "failed")
        self.assertEqual((ended.state, await self.text(ended)), ("ended", "-np 4 /bin/echo ; touch x $(id)\n"))

    async def test_a_script_runs_as_its_user_with_the_provider_chosen(self):
        number = await self.script("#!/bin/sh\r\nid -un\r\necho $FI_PROVIDER $A $CLUSTER_NODES\r\ncat $OMPI_MCA_orte_default_hostfile\r\n")
        ended = await self.until(number, "ended", "failed")
        self.assertEqual(await self.text(ended), f"{USER}\ncluster 1 node1,node2\nnode1 slots=2\nnode2 slots=2\n")
        with self.assertRaisesRegex(AgentError, "do not run as root"):
            await self.queue.submit("root", job.read(form()))

    async def test_nodes_are_given_out_in_order_and_only_good_ones(self):
        self.agent.nodes[0]["order"] = "drained"
        first = await self.script("#!/bin/sh\nexec sleep 100\n")
        self.assertEqual((await self.until(first, "running")).nodes, ["node2", "node3"])
        second, third = await self.submit(), await self.submit(nodes="1")
        while not (await self.queue.job(second)).reason:
            await asyncio.sleep(0.005)
        self.assertEqual((await self.queue.job(second)).reason, "waits for 2 free nodes: 0 of 2 are")
        self.assertEqual((await self.queue.job(third)).state, "queued")
        await self.queue.cancel(await self.queue.job(first), "ole")
        self.assertEqual((await self.until(first, "cancelled")).reason, "cancelled by ole")
        await self.until(second, "ended")
        await self.until(third, "ended")
        self.assertLessEqual((await self.queue.job(second)).started, (await self.queue.job(third)).started)

    async def test_a_job_on_a_machine_gets_its_nodes_and_holds_no_others(self):
        async def on(*nodes):
            return await self.queue.submit(USER, job.read(form(program="", arguments="", script="#!/bin/sh\nexec sleep 100\n"), nodes))

        first = await on("node3")
        self.assertEqual((await self.until(first, "running")).nodes, ["node3"])
        second, third = await on("node3", "node2"), await on("node1")
        self.assertEqual((await self.until(third, "running")).nodes, ["node1"])
        self.assertEqual((await self.queue.job(second)).reason, "waits for node3")
        fourth = await self.submit(nodes="1")  # node2 is free, but held
        while not (await self.queue.job(fourth)).reason:
            await asyncio.sleep(0.005)
        self.assertEqual((await self.queue.job(fourth)).reason, "waits for 1 free nodes: 0 of 3 are")
        await self.queue.cancel(await self.queue.job(first), "ole")
        self.assertEqual((await self.until(second, "running")).nodes, ["node3", "node2"])

    async def test_only_names_of_hosts_come_into_a_hostfile(self):
        for name in ("node1\nnode3 slots=9", "-x", "node 1"):
            self.agent.nodes[0]["name"] = name
            number = await self.script("#!/bin/sh\ncat $OMPI_MCA_orte_default_hostfile\n")
            self.assertEqual(await self.text(await self.until(number, "ended", "failed")), "node2 slots=2\nnode3 slots=2\n")

    async def test_a_job_that_fails_says_so(self):
        found = await self.until(await self.script("#!/bin/sh\nexit 3\n"), "failed")
        self.assertEqual((found.reason, found.status), ("status 3", 3))
        found = await self.until(await self.script("#!/no/such/shell\n"), "failed")
        self.assertIn("could not be started", found.reason)

    async def left_behind(self, text):
        """Runs a script whose child leaves its session; returns the job, the child, and whether it lives."""
        number = await self.script(f"#!/bin/sh\nsetsid sleep 1000 &\necho $!\n{text}\n")
        found = await self.until(number, "running", "ended")
        while not (said := await self.text(found)).endswith("\n"):
            await asyncio.sleep(0.005)
        return found, int(said)

    async def test_all_processes_end_with_their_job(self):
        for place in (job_group._place, lambda: None):  # pylint: disable=protected-access
            with mock.patch.object(job_group, "_place", place):
                found, child = await self.left_behind("exec sleep 1000")
                self.assertTrue(os.path.exists(f"/proc/{child}"))
                await self.queue.cancel(found, "ole")
                self.assertEqual((await self.until(found.number, "cancelled")).reason, "cancelled by ole")
                await self.gone(child)
                self.assertEqual(self.agent.ended[-1], {"user": USER, "job": found.number, "nodes": ["node1", "node2"]})
                found, child = await self.left_behind("")
                self.assertEqual((await self.until(found.number, "ended")).reason, "")
                await self.gone(child)

    async def gone(self, process):
        """A process that was killed takes a moment to end."""
        for _ in range(400):
            try:
                with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        return
            except OSError:
                return
            await asyncio.sleep(0.005)
        os.kill(process, 9)
        self.fail("it runs on")

    @unittest.skipUnless(job_group._place(), "no cgroups of version 2")  # pylint: disable=protected-access
    async def test_a_process_of_a_job_cannot_hide(self):
        number = await self.script("#!/bin/sh\nenv -i setsid sleep 1000 &\necho $!\n")
        child = int(await self.text(await self.until(number, "ended")))
        await self.gone(child)

    async def test_nodes_that_do_not_answer_are_named(self):
        self.agent.left = ["node2"]
        self.assertEqual((await self.until(await self.submit(), "ended")).reason, "(processes of it may be left on node2)")

    async def test_jobs_are_known_after_a_restart(self):
        ended = await self.submit()
        await self.until(ended, "ended")
        running = await self.script("#!/bin/sh\nexec sleep 100\n")
        await self.until(running, "running")
        await self.queue.stop()
        self.queue = self.new_queue()
        await self.queue.start()
        self.assertEqual([found.state for found in await self.queue.jobs()], ["lost", "ended"])
        self.assertEqual(await self.submit(), "3")


class QueueDouble:
    """Takes everything; one job of sam's is there."""
    title, kind = "a double", "double"

    def __init__(self):
        self.requests, self.cancelled = [], []
        self.one = job.Job("1", "sam", "<b>bold</b>", job.RUNNING, 2, 4, ["node1", "node2"], 1.0, 2.0)

    async def start(self):
        pass

    stop = start

    async def submit(self, user, request):
        self.requests.append((user, request))
        return "1"

    async def jobs(self):
        return [self.one]

    async def job(self, number):
        return self.one if number == "1" else None

    async def cancel(self, found, by):
        self.cancelled.append((found.number, by))

    async def output(self, _found, offset):
        return "<i>na\u00efve</i>".encode()[offset:offset + 6], offset + 6


class Pages(unittest.TestCase):
    def setUp(self):
        self.queue = QueueDouble()
        self.page = doubles.Page(doubles.Agent(), self.queue)
        self.addCleanup(self.page.stop)

    def test_jobs_belong_to_their_users(self):
        lea, sam, ole = (self.page.browser(user) for user in ("lea", "sam", "ole"))
        self.assertNotIn("<b>", lea.get("/jobs").text + lea.get("/jobs/1").text)
        self.assertEqual(lea.get("/jobs/new").status, 403)
        self.assertEqual(lea.post("/jobs/new", GOOD).status, 403)
        self.assertEqual(lea.get("/jobs/1/output").status, 404)
        self.assertEqual(lea.post("/jobs/1/cancel", {}).status, 403)
        self.assertEqual([browser.post("/jobs/1/cancel", {}).status for browser in (sam, ole)], [303, 303])
        self.assertEqual(self.queue.cancelled, [("1", "sam"), ("1", "ole")])
        self.assertEqual(sam.get("/jobs/2").status, 404)

    def test_cancelling_a_job_asks_first(self):
        self.assertIn('data-ask="Cancel job 1, &lt;b&gt;bold&lt;/b&gt;, of sam?', self.page.browser("sam").get("/jobs/1").text)

    def test_a_job_is_submitted_by_its_user_and_no_other(self):
        sam = self.page.browser("sam")
        self.assertEqual(sam.post("/jobs/new", {**GOOD, "user": "root"}).headers["location"], "/jobs/1")
        self.assertEqual(self.queue.requests, [("sam", job.read(GOOD))])
        answer = sam.post("/jobs/new", {**GOOD, "name": "<script>alert(1)</script>"})
        self.assertEqual((answer.status, len(self.queue.requests)), (400, 1))
        self.assertNotIn("<script>alert", answer.text)
        self.assertEqual(sam.post("/jobs/new", GOOD, {"origin": "https://evil.example"}).status, 403)
        self.assertEqual(sam.post("/jobs/new", {**GOOD, "token": "x"}).status, 403)

    def test_logins_and_jobs_are_noted_with_their_user(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.page.browser().log_in("sam\nx\x1b", "wrong")
            sam, ole = self.page.browser("sam"), self.page.browser("ole")
            sam.post("/jobs/new", GOOD)
            ole.post("/jobs/1/cancel", {})
            sam.post("/logout", {})
        notes = [json.loads(line.removeprefix("audit: ")) for line in said.getvalue().splitlines()]
        for note in notes:
            self.assertRegex(note.pop("at"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(notes, [
            {"event": "login refused", "user": "sam\nx\x1b", "address": "127.0.0.1"},
            {"event": "login", "user": "sam", "address": "127.0.0.1"}, {"event": "login", "user": "ole", "address": "127.0.0.1"},
            {"event": "job submitted", "user": "sam", "job": "1", "name": "first try", "nodes": 2, "program": "/bin/echo"},
            {"event": "job cancelled", "user": "ole", "job": "1", "owner": "sam"}, {"event": "logout", "user": "sam"}])

    def test_why_a_job_is_stuck(self):
        """Of its user only, whoever else claims the name."""
        def process(rank, **more):
            return {"node": "node1", "pid": 100 + rank, "command": "<b>x</b>", "job": "1", "rank": rank, "size": 2, "state": "R", "uid": 7,
                    "addresses": [f"10.64.0.1:{rank}"], **more}

        waits = {"kind": "receive", "peer": "10.64.0.1:1", "waits_for": "to send a message that matches it", "bytes": 8, "age_s": 9.0}
        lea, sam = (self.page.browser(user) for user in ("lea", "sam"))
        with mock.patch("pwd.getpwnam", lambda name: types.SimpleNamespace(pw_uid={"sam": 7}[name])):
            self.assertIn("No process of this job has an endpoint", sam.get("/jobs/1/why").text)
            self.page.agent.processes = [process(0, operations=[waits]), process(1, state="T", stop_signal=19),
                                         *(process(rank, uid=8, state="T") for rank in (2, 3, 4))]
            text = sam.get("/jobs/1/why").text
            self.assertIn("<pre tabindex=\"0\">Rank 1 on node1 has made no call for 9.0 s: stopped by SIGSTOP; 1 rank waits for it.\n", text)
            self.assertNotIn("<b>", text)
            self.assertEqual(lea.get("/jobs/1/why").status, 404)
        self.assertIn('hx-get="/jobs/1/why"', sam.get("/jobs/1").text)
        self.assertNotIn('hx-get="/jobs/1/why"', lea.get("/jobs/1").text)

    def test_output_comes_in_pieces_and_is_text(self):
        sam = self.page.browser("sam")
        found, behind = "", "0"
        while behind:
            text = sam.get(f"/jobs/1/output?from={behind}").text
            found += "".join(re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.DOTALL))
            following = re.search(r"from=(\d+)", text).group(1)
            behind = "" if "<pre" not in text else following
        self.assertEqual(found, "&lt;i&gt;na\u00efve&lt;/i&gt;")
        for offset in ("%C2%B2", "-1", "1e3", "9" * 30):  # a superscript is a digit to Python, but no number
            self.assertEqual(sam.get(f"/jobs/1/output?from={offset}").status, 200, offset)


if __name__ == "__main__":
    unittest.main()
