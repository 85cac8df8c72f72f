"""What a user has on the page beside jobs: chosen nodes and machines, files, history, accounts, traffic."""
import asyncio
import contextlib
import io
import json
import os
import pwd
import re
import ssl
import sys
import tempfile
import time
import unittest
from unittest import mock

import doubles

if not doubles.with_packages():
    print("skipped: Starlette, uvicorn or Jinja2 is missing")
    sys.exit(77)

import websockets  # noqa: E402

from cluster_page_lib import archive, commands, machines, terminals, watch  # noqa: E402
from cluster_page_lib.jobs import job, records  # noqa: E402
from cluster_page_lib.web import files, terminal, traffic  # noqa: E402
from clusterd_lib import job_group  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402


class QueueDouble:
    """A running and an ended job of sam's."""
    title, kind = "a double", "double"

    def __init__(self):
        now = time.time()
        self.requests = []
        self.all = [job.Job("1", "sam", "one", job.RUNNING, 2, 4, ["node1", "node2"], now - 100, now - 90),
                    job.Job("2", "sam", "two", job.FAILED, 3, 3, ["node1"], now - 100, now - 90, now - 30, status=3)]

    async def start(self):
        pass

    stop = start

    async def submit(self, user, request):
        self.requests.append((user, request))
        return "1"

    async def jobs(self):
        return self.all

    async def job(self, number):
        return next((found for found in self.all if found.number == number), None)

    async def output(self, _job, offset):
        return b"", offset


class Desk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = doubles.Page(doubles.Agent(), QueueDouble())
        cls.addClassCleanup(cls.page.stop)

    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home, self.ran_as = home.name, []
        self.agent, self.queue = doubles.Agent(4), QueueDouble()
        self.saved = {}

        async def started(user, words, job="", **environment):
            self.ran_as.append(user)
            return await asyncio.create_subprocess_exec(*words, stdin=-1, stdout=-1, stderr=-1,
                                                        env={**os.environ, **environment, "HOME": self.home, job_group.VARIABLE: job})

        quiet = contextlib.redirect_stderr(io.StringIO())
        self.said = quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        patch = mock.patch.object(commands, "started_as", started)
        patch.start()
        self.addCleanup(patch.stop)
        self.page.renew(self.agent)
        context = self.page.context
        context.jobs, context.watch = self.queue, watch.Watch(os.path.join(self.home, ".state"), context.cluster, self.queue)
        context.shared_state.clear()
        self.page.context.machines = machines.Machines(self.run_machine)
        self.sam, self.lea = self.page.browser("sam"), self.page.browser("lea")

    async def run_machine(self, user, *words):
        self.ran_as.append(user)
        if words[0] == "--json":
            return json.dumps(self.saved)
        if words[1] == "--remove":
            del self.saved[words[0]]
        else:
            self.saved[words[0]] = list(words[1:])
        return ""


class Machines(Desk):
    def test_chosen_by_clicks_saved_used_removed(self):
        for name in ("node1", "node3", "node2", "node2"):
            self.assertEqual(self.sam.post("/choose", {"node": name, "page": "0"}).status, 303)
        text = self.sam.get("/").text
        self.assertIn("2 nodes: node1, node3", text)
        self.assertEqual(text.count('aria-pressed="true"'), 2)
        self.assertIn('aria-label="Chosen node3">Chosen<', text)  # what is seen begins what is said
        self.assertEqual(self.sam.post("/machines/save", {"name": "lab"}).status, 303)
        self.assertEqual(self.saved, {"lab": ["node1", "node3"]})
        self.assertIn("cluster-run -m lab", self.sam.get("/machines").text)
        self.assertIn('<option value="lab" selected', self.sam.get("/jobs/new?machine=lab").text)
        fields = {"name": "x", "nodes": "9", "ranks": "4", "minutes": "5", "program": "/bin/true", "machine": "lab"}
        self.assertEqual(self.sam.post("/jobs/new", fields).status, 303)
        user, request = self.queue.requests[0]
        self.assertEqual((user, request.nodes, request.on), ("sam", 2, ["node1", "node3"]))
        self.assertIn("no machine &#39;other&#39;", self.sam.post("/jobs/new", {**fields, "machine": "other"}).text)
        self.assertEqual(self.sam.post("/machines/remove", {"name": "lab"}).status, 303)
        self.assertEqual((self.saved, set(self.ran_as)), ({}, {"sam"}))

    def test_a_click_answers_with_the_nodes_and_the_choice(self):
        text = self.sam.post("/choose", {"node": "node2"}, {"hx-request": "true"}).text
        self.assertIn('<section id="nodes"', text)
        self.assertIn('<section id="choice" aria-labelledby="choice-head" hx-swap-oob="true">', text)

    def test_each_user_has_a_choice_of_his_own_and_only_with_the_role(self):
        self.sam.post("/choose", {"node": "node1"})
        self.assertNotIn("1 node:", self.page.browser("ole").get("/").text)
        self.assertEqual(self.lea.post("/choose", {"node": "node1"}).status, 403)
        self.assertNotIn('class="choose"', self.lea.get("/").text)
        for path in ("/machines", "/files", "/files/edit?path=a", "/files/download?path=a"):
            self.assertEqual(self.lea.get(path).status, 403, path)

    def test_what_is_refused(self):
        self.assertEqual(self.sam.post("/choose", {"node": "node9"}).status, 503)
        self.sam.post("/choose", {"node": "node1"})
        for name in ("", "-x", "../x", "<b>", "x" * 33):
            answer = self.sam.post("/machines/save", {"name": name})
            self.assertEqual((answer.status, self.saved), (400, {}), name)
            self.assertNotIn("<b>", answer.text)
        self.saved = {"<b>": ["node1"], "ok": ["node1\n-x"], "fine": ["node1"]}
        self.assertEqual(asyncio.run(self.page.context.machines.of("sam")), {"fine": ["node1"]})


class Files(Desk):
    def test_written_listed_changed_removed(self):
        self.assertEqual(self.sam.post("/files/change", {"action": "folder", "path": "", "name": "work"}).status, 303)
        self.assertEqual(self.sam.post("/files/edit", {"path": "work", "name": "run.sh", "text": "#!/bin/sh\r\necho <b>\r\n"}).status, 303)
        path = os.path.join(self.home, "work", "run.sh")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "#!/bin/sh\necho <b>\n")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o700)
        self.assertIn("run.sh", self.sam.get("/files?path=work").text)
        self.assertIn("echo &lt;b&gt;", self.sam.get("/files/edit?path=work/run.sh").text)
        self.assertIn("echo &lt;b&gt;", self.sam.get("/jobs/new?run=work/run.sh").text)
        answer = self.sam.get("/files/download?path=work/run.sh")
        self.assertEqual((answer.text, answer.headers["content-type"]), ("#!/bin/sh\necho <b>\n", "application/octet-stream"))
        self.assertIn("attachment", answer.headers["content-disposition"])
        self.assertEqual(self.sam.post("/files/change", {"action": "remove", "path": "work/run.sh"}).status, 303)
        self.assertFalse(os.path.exists(path))
        self.assertEqual(set(self.ran_as), {"sam"})
        self.assertIn('"event": "file written", "user": "sam", "path": "work/run.sh"', self.said.getvalue())

    def upload(self, path, body, **headers):
        return self.sam.request("POST", f"/files/upload?path={path}", body, {
            "origin": f"https://{self.sam.host}", "x-token": self.sam.token, "hx-request": "true", **headers})

    def test_an_upload_is_complete_or_nothing(self):
        data = os.urandom(300_000)
        self.assertEqual(self.upload("data", data).status, 200)
        with open(os.path.join(self.home, "data"), "rb") as file:
            self.assertEqual(file.read(), data)
        self.assertEqual(self.upload("no/such/folder", b"x").status, 503)
        self.assertEqual(self.upload("data", b"x", **{"x-token": "guessed"}).status, 403)
        self.assertEqual(self.upload("data", b"x", origin="https://evil.example").status, 403)
        with mock.patch.object(files, "FILE_MAX", 10):
            self.assertEqual(self.upload("big", b"x" * 11).status, 413)
        with self.assertRaises(AgentError):  # what breaks off
            asyncio.run(files.access_files("sam", "write", "data", "10", stdin=b"short"))
        self.assertEqual(set(os.listdir(self.home)) - {".state"}, {"data"})
        self.assertEqual(os.path.getsize(os.path.join(self.home, "data")), 300_000)

    def test_paths_stay_below_the_home_directory(self):
        for path in ("../etc/passwd", "a/../../b", "a%0Ab", "x" * 1001):
            for place in ("/files", "/files/edit", "/files/download", "/jobs/new"):
                name = "run" if place == "/jobs/new" else "path"
                self.assertEqual(self.sam.get(f"{place}?{name}={path}").status, 400, (place, path))
        self.assertEqual(self.sam.get("/files/download?path=/etc/passwd").status, 503)  # of the home directory
        self.assertEqual(self.sam.get("/files/edit?path=nothing").status, 503)

    def test_what_is_no_text_is_not_edited(self):
        for name, data in (("a", b"\xff"), ("b", b"a\0"), ("c", b"x" * (files.EDIT_MAX + 1))):
            with open(os.path.join(self.home, name), "wb") as file:
                file.write(data)
            self.assertIn("is no text", self.sam.get(f"/files/edit?path={name}").text)

    def test_a_program_is_run_by_its_whole_path(self):
        whole = os.path.join(os.path.realpath(self.home), "built")
        with open(whole, "wb") as file:
            file.write(b"\x7fELF\0")
        text = self.sam.get("/files").text
        self.assertIn(f'<code id="where">{os.path.realpath(self.home)}</code>', text)
        self.assertIn('href="/jobs/new?run=built"', text)
        text = self.sam.get("/jobs/new?run=built").text
        self.assertIn(f'value="{whole}"', text)
        self.assertIn('value="built"', text)

    def test_a_name_that_is_not_utf8_spoils_no_page(self):
        with open(os.path.join(self.home.encode(), b"caf\xe9"), "wb"):
            pass
        os.mkdir(os.path.join(self.home.encode(), b"\xff"))
        self.assertIn("2 more are not shown", self.sam.get("/files").text)


class Books(Desk):
    def test_history_has_dates_and_survives(self):
        self.agent.history = [{"number": 2, "at": 1764000000.0, "kind": "state", "node": "node2", "text": "<b>up"},
                              {"number": 1, "at": 1763900000.0, "kind": "state", "node": "node1", "text": "down"}]
        text = self.lea.get("/history").text
        self.assertRegex(text, r"(?s)2025-11-2\d.*&lt;b&gt;up.*2025-11-2\d.*down")
        self.assertEqual(text.count('<h2 id="day-'), 2)
        self.assertNotIn("&lt;b&gt;up", self.lea.get("/history?node=node1").text)
        self.agent.history = []  # the agent was started anew
        self.assertIn("&lt;b&gt;up", self.lea.get("/history").text)
        again = watch.Watch(os.path.join(self.home, ".state"), self.page.context.cluster, self.queue)
        self.assertEqual([event["number"] for event in again.events.entries], [1, 2])

    def test_what_users_and_jobs_have_used(self):
        peers = [{"path": "packet"}, {"path": "shm"}, {"path": "udp", "rails": [{"relay": "10.0.0.9:9227"}]}]
        self.agent.endpoints = [{"node": "node1", "pid": 5, "job": "1", "endpoint": {"endpoint": "a"}, "peers": peers,
                                 "counters": {"bytes_sent": 2_000_000, "bytes_received": 500}}]
        text = self.sam.get("/accounts").text
        self.assertRegex(text, r'<th scope="row">sam</th><td class="number">1</td><td class="number">0.05</td>')  # 3 nodes, 60 s
        self.assertIn('<th scope="row">2</th><td>two</td>', text)
        self.assertNotIn("<td>two</td>", self.lea.get("/accounts").text)
        page = self.sam.get("/jobs/1").text
        self.assertIn("1 packet, 1 shm, 1 udp by relay 10.0.0.9:9227", page)
        self.assertIn("2.0 MB sent, 500 B received", page)
        self.assertIn("1 packet, 1 shm", self.lea.get("/jobs/1/use").text)
        have = re.search(r"/part\?have=(\w+)", page).group(1)
        time.sleep(1.1)
        self.assertEqual(self.sam.get(f"/jobs/1/part?have={have}").status, 204, "the button to cancel stays")
        self.agent.endpoints = []
        self.queue.all[0].state, self.queue.all[0].ended = job.ENDED, time.time()
        self.lea.get("/accounts")
        self.assertIn("2.0 MB", self.sam.get("/accounts").text)
        self.assertIn("1 packet, 1 shm", self.sam.get("/jobs/1").text)
        self.assertIn('<dd id="status">3</dd>', self.sam.get("/jobs/2").text)

    def test_traffic_of_all_nodes_adds_up(self):
        def samples(rate, shift):
            return [{"at": 1000.0 + 2 * number + shift, "rates": {"eth0": [rate, 0], "eth1": [1, rate]}} for number in range(8)]
        found = traffic.added_up({"node1": samples(10, 0), "node2": samples(100, 1.5), "node3": []})
        self.assertEqual((found["at"][:2], found["in"][:2], found["out"][:2]), ([1000, 1004], [112, 112], [110, 110]))
        answer = json.loads(self.lea.get("/traffic/series").text)
        self.assertEqual([entry["name"] for entry in answer["jobs"]], ["one", "two"])

    def test_an_archive_keeps_the_newest(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "books", "lines")
            kept = archive.Archive(path, 10)
            for number in range(25):
                kept.add([{"number": number}])
            self.assertEqual([entry["number"] for entry in archive.Archive(path, 10).entries], list(range(15, 25)))
            self.assertLessEqual(len(kept.entries), 20)
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)


class Again(Desk):
    FIELDS = {"name": "one", "nodes": "2", "ranks": "4", "minutes": "5", "program": "/bin/echo", "arguments": "'<b>' c", "environment": "A=secret"}

    def test_the_page_of_a_job_shows_what_was_asked_and_runs_it_again(self):
        self.assertEqual(self.sam.post("/jobs/new", self.FIELDS).status, 303)
        text = self.sam.get("/jobs/1").text
        self.assertIn("/bin/echo &#39;&lt;b&gt;&#39; c", text)
        self.assertIn("A=secret", text)
        self.assertNotIn("secret", self.lea.get("/jobs/1").text)
        self.assertIn('value="/bin/echo"', self.sam.get("/jobs/new?again=1").text)
        other = self.page.context.records
        self.assertIsNone(other.find("double", job.Job("1", "ole", "one", job.ENDED, 1, 1)))
        self.assertIsNone(other.find("double", job.Job("1", "sam", "another", job.ENDED, 1, 1)))

    def test_records_are_of_a_bounded_number_and_for_root(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(records, "KEPT_MAX", 3):
            kept = records.Records(os.path.join(place, "records"))
            for number in range(5):
                kept.keep("own", str(number), "sam", self.FIELDS)
            self.assertEqual(len(os.listdir(os.path.join(place, "records"))), 3)
            self.assertEqual(os.stat(os.path.join(place, "records")).st_mode & 0o777, 0o700)


class Terminals(Desk):
    """A shell of this test's user in the place of sam's."""

    def setUp(self):
        super().setUp()
        self.page.context.terminals = terminals.Terminals(self.page.context.settings, self.page.context.cluster)
        self.page.context.terminals.past.entries.clear()
        os.environ["SHELL"] = "/bin/sh"
        self.saved["lab"] = ["node1", "node3"]
        self.own = pwd.getpwuid(os.geteuid())
        for patch in (mock.patch.object(terminal, "LOOK_SECONDS", 0.05), mock.patch.object(job_group, "_place", lambda: None),
                      mock.patch.object(terminals.accounts, "find", lambda _user: self.own)):
            patch.start()
            self.addCleanup(patch.stop)

    @contextlib.asynccontextmanager
    async def opened(self, browser=None, origin=None, **hello):
        browser = browser or self.sam
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        async with websockets.connect(f"wss://{browser.host}/terminal/socket", ssl=context, origin=origin or f"https://{browser.host}",
                                      extra_headers={"cookie": browser.cookie}) as found:
            await found.send(json.dumps({"token": browser.token, "rows": 30, "columns": 99, **hello}))
            yield found

    async def until(self, found, text):
        """All that the terminal has said when it has said this."""
        said = ""
        while text not in said:
            piece = await asyncio.wait_for(found.recv(), 20)
            said += piece if isinstance(piece, str) else piece.decode()
        return said

    async def end_of(self, found):
        """The last text that it sends before it closes."""
        said = ""
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                piece = await asyncio.wait_for(found.recv(), 20)
                said = piece if isinstance(piece, str) else said
        return said

    def test_a_shell_with_the_machine_at_hand(self):
        async def talk():
            async with self.opened(machine="lab") as found:
                await found.send(b"stty size; echo $((6*7)) $CLUSTER_MACHINE $CLUSTER_NODES $FI_PROVIDER\n")
                said = await self.until(found, "42 lab node1,node3 cluster")
                await found.send(json.dumps({"rows": 20, "columns": 55}))
                await found.send(b"stty size\n")
                await self.until(found, "20 55")
                await found.send(b"exit\n")
                await self.end_of(found)
                return said
        self.assertIn("30 99", asyncio.run(talk()))
        self.assertEqual(set(self.ran_as), {"sam"})
        self.until_closed()
        job = self.page.context.terminals.past.entries[0]["job"]
        self.assertEqual(self.agent.ended, [{"user": "sam", "job": job, "nodes": ["node1", "node3"]}])
        for event in ("opened", "closed"):
            self.assertIn(f'"event": "terminal {event}", "user": "sam", "machine": "lab", "job": "{job}"', self.said.getvalue())
        self.assertIn("<td>lab</td><td>127.0.0.1</td>", self.sam.get("/terminal").text)
        self.assertNotIn("<td>lab</td><td>127.0.0.1</td>", self.page.browser("nat").get("/terminal").text)

    def until_closed(self):
        deadline = time.monotonic() + 20
        while not self.page.context.terminals.past.entries:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_who_gets_none(self):
        async def refused(status, **options):
            with self.assertRaises(websockets.InvalidStatusCode) as found:
                async with self.opened(**options):
                    pass
            self.assertEqual(found.exception.status_code, status)

        async def told(text, **options):
            async with self.opened(**options) as found:
                self.assertIn(text, await self.end_of(found))
                self.assertEqual(found.close_code, terminal.REFUSED)

        async def all_of_them():
            await refused(403, origin="https://evil.example")
            await refused(403, browser=self.lea)
            await refused(403, browser=self.page.browser())
            await told("", token="guessed")
            await told("no machine 'other'", machine="other")
            with mock.patch.object(terminals, "OF_USER_MAX", 0):
                await told("terminals of sam are open")
        asyncio.run(all_of_them())
        self.assertNotIn("terminal opened", self.said.getvalue())

    def test_it_ends_with_the_session_and_leaves_nothing(self):
        async def talk():
            async with self.opened() as found:
                await found.send(b"sleep 1000 & echo child $!.\n")
                said = re.search(r"child (\d+)\.", await self.until_number(found)).group(1)
                await asyncio.to_thread(self.sam.post, "/logout", {})
                await self.end_of(found)
                return int(said)
        child = asyncio.run(talk())
        self.until_closed()
        deadline = time.monotonic() + 20
        while os.path.exists(f"/proc/{child}"):
            with open(f"/proc/{child}/stat", encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    break
            self.assertLess(time.monotonic(), deadline, "it runs on")
            time.sleep(0.02)

    async def until_number(self, found):
        said = ""
        while not re.search(r"child \d+\.", said):
            said += (await asyncio.wait_for(found.recv(), 20)).decode()
        return said

    def test_only_the_page_of_the_terminal_lets_in_styles_and_only_with_its_nonce(self):
        answers = [self.sam.get("/terminal") for _ in range(2)]
        nonces = [re.search(r"style-src 'self' 'nonce-([\w-]{20,})'", answer.headers["content-security-policy"]).group(1) for answer in answers]
        self.assertNotEqual(*nonces)
        self.assertIn(f'nonce="{nonces[0]}"', answers[0].text)
        self.assertIn("script-src 'self';", answers[0].headers["content-security-policy"])
        self.assertNotIn("nonce", self.sam.get("/").headers["content-security-policy"])


if __name__ == "__main__":
    unittest.main()
