"""Which other agents, processes, sockets, connections and key files an agent and its callers trust.
"""
import asyncio
import collections
import contextlib
import io
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib import interpreter, key, settings  # noqa: E402

try:
    interpreter.with_packages(install=False)
except interpreter.AgentError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from cluster_lib import ranks  # noqa: E402
from clusterd_lib import checked, operations, passed_sockets, query, reports, roles, survey, transport, view  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402
from clusterd_lib.measure import accounting, endpoints  # noqa: E402
from clusterd_lib.protocol import wire  # noqa: E402
from clusterd_lib.protocol.membership import Member  # noqa: E402
from clusterd_lib.status import cli  # noqa: E402
from cluster_why_lib import report  # noqa: E402

KEY = b"k" * 16


def good_card(name="x", **more):
    rail = {"device": "eth0", "address": "10.0.0.66", "network": "10.0.0.0/24", "mtu": 1500, "speed": 0, "duplex": "full", "up": True}
    return {"name": name, "port": 7947, "rails": [{**rail, **more}]}


class Cards(unittest.TestCase):
    def fetched(self, card):
        async def ask(*_words, **_options):
            return card

        transport = types.SimpleNamespace(names_of={}, refused=collections.Counter())
        seen = survey.Survey(types.SimpleNamespace(name="a", port=7947), b"", transport, None, ask)
        seen.rails = good_card()["rails"]
        asyncio.run(seen.fetch_card("x", "10.0.0.66"))
        seen.findings()
        return seen.cards

    def test_a_card_is_looked_at_before_it_is_kept(self):
        self.assertEqual(list(self.fetched(good_card())), ["x"])
        rails = good_card()["rails"]
        for card in (None, [], "x", {}, {"rails": rails, "port": 7947},
                     {"rails": [{"address": "10.0.0.66", "mtu": 1500}], "port": 7947, "name": "x"}, good_card("another"),
                     good_card(mtu=2**40), good_card(mtu="1500"), good_card(mtu=True), good_card(address="localhost"),
                     good_card(speed=[]), good_card(speed=float("nan")), good_card(device="\x1b[2J"), good_card(network={}), good_card(up=1),
                     {**good_card(), "port": 70000}, {**good_card(), "rails": rails * 9}):
            self.assertEqual(self.fetched(card), {}, card)

    @staticmethod
    def kept(report):
        async def run():
            async def ask(*_words):
                return report

            found = reports.Reports(ask, None)
            await found._fetch("x", "10.0.0.66", asyncio.Semaphore())  # pylint: disable=protected-access
            return found.latest("x")[0]

        return asyncio.run(run())

    def test_what_a_process_says_does_not_move_it_to_another_node(self):
        endpoint = {"endpoint": {"endpoint": "e"}, "node": "b", "pid": 1, "job": "42", "command": "init"}
        latest = {"processes": [{"pid": 7, "command": "a", "job": "", "endpoints": [endpoint]}]}
        seen = view.View(types.SimpleNamespace(name="a", membership=types.SimpleNamespace(members={"a": None})), None, None, None, None, None)
        with mock.patch.object(seen, "own_report", lambda: {"endpoints": latest}):
            row = seen.endpoints()[0]
        self.assertEqual([row[name] for name in ("node", "pid", "command", "job")], ["a", 7, "a", ""])

    def test_a_report_is_looked_at_too(self):
        def report(**changed):
            load = {"cpu": 1.0, "memory": 2.0, "load1": 0.1, "rates": {"eth0": [1, 2]}}
            return {"card": good_card(), "load": load, "links": [], "findings": [], "endpoints": {"processes": []}, **changed}

        self.assertEqual(checked.report(report(), "x"), report())
        self.assertEqual(self.kept(report()), report())
        self.assertIsNone(self.kept({}))
        deep = []
        for _ in range(500):
            deep = [deep]
        for changed in ({"card": good_card("y")}, {"load": {}}, {"links": [{}]}, {"more": deep}, {"card": {**good_card(), "more": deep}},
                        {"findings": [{"node": "x", "rail": None, "kind": "a", "text": "\x1b[2J"}]},
                        {"endpoints": {"processes": [{"pid": 1, "command": "a", "endpoints": [{}]}]}}):
            self.assertRaises(AgentError, checked.report, report(**changed), "x")

    def test_rails_that_no_node_has_are_not_kept(self):
        seen = survey.Survey(types.SimpleNamespace(name="a", port=7947), b"", types.SimpleNamespace(names_of={}), None, None)
        for number in range(100):
            seen.on_hello(wire.Message(wire.HELLO, 0, "x", "", number), 0, ("10.0.0.66", 7947), 0)
        self.assertLessEqual(len(seen._heard), 8)  # pylint: disable=protected-access


class Processes(unittest.TestCase):
    def refreshed(self, said):
        async def run(*_words):
            return said

        found = endpoints.Endpoints("/bin/true", lambda _: "")
        found._run = run  # pylint: disable=protected-access
        asyncio.run(found.refresh())
        return found.latest["processes"]

    def test_what_one_process_says_hides_no_other(self):
        name, options = {"endpoint": "e"}, [{"option": "FI_A", "from": "environment"}, {"option": "FI_B", "from": "default"}]
        good = {"pid": 2, "command": "b", "endpoints": [{"endpoint": name, "counters": {"bytes_sent": 7}, "options": options}]}
        for bad in ({"endpoint": name, "options": [{"option": "FI_X", "value": "1"}]}, {"endpoint": {}}, {"endpoint": "e"}, {}, [],
                    *({"endpoint": name, "counters": counters} for counters in (
                        {"bytes_sent": "x"}, [1], {"bytes_sent": -1}, {f"a{number}": 1 for number in range(1000)})),
                    {"endpoint": name, "peers": [{"peer": "p"}]},
                    {"endpoint": name, "counters": {}, "peers": [{"peer": "p", "path": "shm", "sent_frames": 1}]}):
            processes = self.refreshed(json.dumps({"processes": [{"pid": 1, "command": "a", "endpoints": [bad]}, good]}))
            self.assertEqual([process["pid"] for process in processes], [1, 2], bad)
            self.assertLess(len(processes[0]["endpoints"][0].get("counters", ())), 300, "each is a family of metrics")
            self.assertEqual(processes[1]["endpoints"][0]["options"], options[:1], bad)
        self.assertEqual(self.refreshed("9" * 5000), [])

    def test_an_answer_waits_for_no_look_that_takes_long(self):
        async def run():
            found = endpoints.Endpoints("/bin/true", lambda _: "")
            found.latest = {"processes": ["as before"]}
            looks, go_on = [], asyncio.Event()

            async def look(*words):
                looks.append(words)
                await go_on.wait()
                return json.dumps({"processes": []})

            found._run = look  # pylint: disable=protected-access
            with mock.patch.object(endpoints, "WAIT_SECONDS", 0.01), mock.patch.object(endpoints, "PAUSE_SECONDS", 0):
                await asyncio.wait_for(asyncio.gather(*(found.refresh() for _ in range(3))), 5)
                await asyncio.wait_for(found.refresh(), 5)
                self.assertEqual((len(looks), found.latest), (1, {"processes": ["as before"]}))
            go_on.set()
            await found.refresh()
            self.assertEqual((len(looks), found.latest), (1, {"processes": []}))

        asyncio.run(run())

    def test_a_report_is_read_whole_or_not_at_all(self):
        async def run(most):
            with mock.patch.object(endpoints, "BYTES_MAX", most), tempfile.NamedTemporaryFile("w", suffix="info") as file:
                file.write('#!/bin/sh\nprintf \'{"processes": [ ]}\'\n')
                file.flush()
                os.chmod(file.name, 0o700)
                file.file.close()
                found = endpoints.Endpoints(file.name, lambda _: "")
                await found.refresh()
                return found.latest

        self.assertEqual(asyncio.run(run(100)), {"processes": []})
        self.assertEqual(asyncio.run(run(5)), {"processes": [], "trouble": "cluster-info: it prints more than 0 MB"})

    def test_a_job_belongs_to_the_user_that_was_seen_with_it_first(self):
        owners = {1: 1000, 2: 65534, 3: 1000}
        seen = accounting.Accounting(lambda pid: "42", lambda _: "", owners.get)

        def look(now, *pids):
            endpoint = {"endpoint": {"endpoint": "e"}, "counters": {"bytes_sent": 10}}
            seen.look([{"pid": pid, "command": "a", "endpoints": [dict(endpoint)]} for pid in pids], now)
            return {job: totals.counted["bytes_sent"] for job, totals in seen.jobs.items()}

        self.assertEqual(look(0, 1, 2, 3), {"42": 20, "": 10})
        self.assertEqual(look(1, 2), {"42": 20, "": 10})
        self.assertEqual(look(2 * accounting.KEEP_SECONDS, 2), {"": 10})
        self.assertEqual(look(2 * accounting.KEEP_SECONDS + 1, 2), {"42": 0, "": 10})

    def test_the_user_of_a_process(self):
        self.assertEqual(ranks.owner_of(os.getpid()), os.getuid())
        self.assertIsNone(ranks.owner_of(0))
        self.assertIs(endpoints.Endpoints("", None).accounting._owner_of, ranks.owner_of)  # pylint: disable=protected-access


@contextlib.contextmanager
def listener(name, user, answer):
    """A user's process that listens on an abstract socket and answers once, as soon as something arrives."""
    ready, child = os.pipe(), os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            os.setuid(user)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
                opened.bind(name)
                opened.listen()
                os.write(ready[1], b"x")
                connection = opened.accept()[0]
                if connection.recv(1):
                    connection.sendall(answer)
                    connection.recv(1 << 16)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        yield
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(ready[0])
        os.close(ready[1])


class LocalSocket(unittest.TestCase):
    def ask(self, user, answer):
        name = f"\0clusterd-test-{os.getpid()}"
        with listener(name, user, answer), mock.patch.object(query, "LOCAL_NAME", name):
            return query.ask_locally("status", seconds=10)

    @unittest.skipUnless(os.geteuid() == 0, "only root starts a process of another user")
    def test_another_user_that_has_the_name_of_the_socket_is_not_believed(self):
        good = b'{"result": 1}'
        self.assertEqual(self.ask(os.geteuid(), struct.pack("!I", len(good)) + good), 1)
        with self.assertRaisesRegex(AgentError, "a process of a user other than root poses"):
            self.ask(65534, struct.pack("!I", len(good)) + good)

    def test_answers_are_bounded_and_have_to_make_sense(self):
        for data in (b"[]", b"{}", b"x", b"1", b"[" * 200_000):
            with self.assertRaisesRegex(AgentError, "is malformed"):
                self.ask(os.geteuid(), struct.pack("!I", len(data)) + data)
        with self.assertRaisesRegex(AgentError, "the answer has 4294967295 bytes"):
            self.ask(os.geteuid(), b"\xff\xff\xff\xff")
        data = b'{"error": "\\u001b[2Jx"}'
        with self.assertRaisesRegex(AgentError, r"^\?\[2Jx$"):
            self.ask(os.geteuid(), struct.pack("!I", len(data)) + data)


async def _echo(_caller, operation, _arguments):
    return operation


class Port(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.server = query.Server("node1", KEY, _echo, types.SimpleNamespace(serve=lambda *_: asyncio.sleep(60)), lambda address: address == "127.0.0.1")
        await self.server.listen("0.0.0.0", 0)
        self.port = self.server.ports()[0]
        self.name = f"\0clusterd-test-{os.getpid()}"
        with mock.patch.object(query, "LOCAL_NAME", self.name):
            await self.server.listen_locally()

    async def asyncTearDown(self):
        self.server.close()

    async def test_a_question_is_for_one_node(self):
        self.assertEqual(await query.ask("node1", "127.0.0.1", self.port, KEY, "card"), "card")
        with self.assertRaises(AgentError):
            await query.ask("node2", "127.0.0.1", self.port, KEY, "card", seconds=5)

    async def idle(self, count, source):
        opened = [await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0)) for _ in range(count)]
        self.addCleanup(lambda: [writer.close() for _, writer in opened])
        return opened

    async def test_connections_of_one_node_keep_out_neither_others_nor_users(self):
        with mock.patch.object(query, "REQUEST_SECONDS", 60):
            opened = await self.idle(query.FROM_ONE_NODE_MAX + 1, "127.0.0.2")
            self.assertEqual(await asyncio.wait_for(opened[-1][0].read(), 20), b"")  # one too many
        self.assertEqual(await query.ask("node1", "127.0.0.1", self.port, KEY, "card", source="127.0.0.1"), "card")

    async def test_connections_of_all_nodes_do_not_keep_out_users(self):
        with mock.patch.object(query, "REQUEST_SECONDS", 60):
            for last in range(2, 8):
                opened = await self.idle(query.FROM_ONE_NODE_MAX, f"127.0.0.{last}")
            self.assertEqual(await asyncio.wait_for(opened[-1][0].read(), 20), b"")
            with mock.patch.object(query, "LOCAL_NAME", self.name):
                self.assertEqual(await asyncio.to_thread(query.ask_locally, "status"), "status")

    async def test_strangers_keep_out_no_node(self):
        with mock.patch.object(query, "REQUEST_SECONDS", 60):
            for last in range(2, 19):
                opened = await self.idle(query.FROM_ONE_NODE_MAX, f"127.0.0.{last}")
            self.assertEqual(await asyncio.wait_for(opened[-1][0].read(), 20), b"")
            self.assertEqual(await query.ask("node1", "127.0.0.1", self.port, KEY, "card", source="127.0.0.1"), "card")

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes other users")
    async def test_users_together_do_not_keep_out_root(self):
        opened = []
        self.addCleanup(lambda: [one.close() for one in opened])
        with mock.patch.object(query, "REQUEST_SECONDS", 60):
            for user in range(65530, 65534):
                os.seteuid(user)  # the kernel notes the user of a connection when it is made
                try:
                    for _ in range(query.FROM_ONE_USER_MAX):
                        opened.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                        opened[-1].connect(self.name)
                finally:
                    os.seteuid(0)
                await asyncio.sleep(0.1)  # the server accepts them
            with mock.patch.object(query, "LOCAL_NAME", self.name):
                self.assertEqual(await asyncio.to_thread(query.ask_locally, "status"), "status")

    async def test_a_connection_without_a_request_is_closed_soon(self):
        with mock.patch.object(query, "REQUEST_SECONDS", 0.05):
            for began in (b"", query.VERSION, query.VERSION + bytes(16) + b"\0\0\0\1", b"GET ", b"GET /metrics HTTP/1.1\r\n"):
                reader, writer = (await self.idle(1, "127.0.0.5"))[0]
                writer.write(began)
                await asyncio.wait_for(reader.read(), 10)


class Terminal(unittest.TestCase):
    def test_what_another_node_says_is_text(self):
        for words in (["--why", "node2"], ["--drain", "node2"]):
            with mock.patch.object(query, "ask_locally", lambda *_: "a\x1b[2J\x9b1m\r\u202eb\nc\n"), \
                    contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(cli.main(words), 0)
            self.assertTrue(said.getvalue().endswith("a?[2J?1m??b\nc\n"), said.getvalue())


# A user's process that takes the names of the agent, where it can.
SQUATTER = """
import os, socket, sys
os.setuid(65534)
for family, kind, where in ((socket.AF_UNIX, socket.SOCK_STREAM, sys.argv[1].replace("@", "\\0")),
                            (socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", int(sys.argv[2]))),
                            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(sys.argv[2]))),
                            (socket.AF_INET, socket.SOCK_DGRAM, ("239.255.79.47", int(sys.argv[2])))):
    one = socket.socket(family, kind)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT) if family == socket.AF_INET else ():
        one.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        one.bind(where)
        print(kind, "taken")
    except OSError:
        pass
"""


@unittest.skipUnless(os.geteuid() == 0, "only root starts a process of another user")
class PassedSockets(unittest.IsolatedAsyncioTestCase):
    async def test_no_user_takes_the_names_that_systemd_holds_for_the_agent(self):
        name, held = f"\0clusterd-test-{os.getpid()}", []
        for family, kind in ((socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
            held.append(socket.socket(family, kind))
            self.addCleanup(held[-1].close)
            if family == socket.AF_INET:
                held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as systemd does
        held[0].bind(name)
        held[1].bind(("0.0.0.0", 0))
        port = held[1].getsockname()[1]
        held[2].bind(("0.0.0.0", port))
        for one in held[:2]:
            one.listen()
        first = 200  # systemd passes descriptors that follow each other
        for number, one in enumerate(held):
            os.dup2(one.fileno(), first + number)
            one.close()
        held = [socket.socket(fileno=first + number) for number in range(len(held))]
        for one in held:
            self.addCleanup(one.close)
        with mock.patch.dict(os.environ, {"LISTEN_FDS": "3", "LISTEN_PID": str(os.getpid())}), \
                mock.patch.object(passed_sockets, "_FIRST", first):
            passed = passed_sockets.Passed(name, port)
            self.assertNotIn("LISTEN_FDS", os.environ)
        for one, copy in zip(held, (passed.local, passed.questions, passed.port_holder)):
            self.assertEqual(one.fileno(), copy.fileno())
            one.detach()
        squatter = subprocess.run([sys.executable, "-c", SQUATTER, name.replace("\0", "@"), str(port)], capture_output=True, text=True, check=True)
        self.assertEqual(squatter.stdout, "")
        rail = {**good_card()["rails"][0], "address": "127.0.0.1", "network": "127.0.0.0/8"}
        opened = transport.Transport(asyncio.get_running_loop(), types.SimpleNamespace(cluster="a", port=port, group="", peers=[]), KEY,
                                     None, passed.port_holder is not None)
        opened.open([rail])
        self.addCleanup(opened.close)
        server = query.Server("node1", KEY, _echo)
        await server.listen_locally(passed.local)
        await server.listen("0.0.0.0", port, passed.questions)
        self.addCleanup(server.close)
        self.addCleanup(passed.port_holder.close)
        self.assertEqual(await query.ask("node1", "127.0.0.1", port, KEY, "card"), "card")
        with mock.patch.object(query, "LOCAL_NAME", name):
            self.assertEqual(await asyncio.to_thread(query.ask_locally, "status"), "status")

    async def test_what_systemd_has_passed_to_another_process_is_not_ours(self):
        with mock.patch.dict(os.environ, {"LISTEN_FDS": "3", "LISTEN_PID": "1"}):
            passed = passed_sockets.Passed("\0x", 1)
        self.assertEqual((passed.local, passed.questions, passed.port_holder), (None, None, None))


class Orders(unittest.IsolatedAsyncioTestCase):
    async def test_an_operator_reads_that_no_other_node_takes_an_order_without_a_key(self):
        caller = query.Caller(uid=0)
        for key_bytes, more in ((KEY, ""), (b"", " (known to this node only: agents without a key take no orders from others)")):
            known = types.SimpleNamespace(members={"x": None})
            whole = types.SimpleNamespace(key=key_bytes, rearm=lambda: None, roles=types.SimpleNamespace(of=lambda _: roles.OPERATE),
                                          agent=types.SimpleNamespace(membership=known, order=lambda *_: None), history=mock.Mock())
            said = await operations.Operations(whole).answer(caller, "order", {"node": "x", "order": "drain", "reason": "disk"})
            self.assertEqual(said, f"drained by root: disk{more}")

    async def test_a_reason_is_text_that_every_agent_can_send_and_show(self):
        taken = []
        whole = types.SimpleNamespace(key=KEY, rearm=lambda: None, roles=types.SimpleNamespace(of=lambda _: roles.OPERATE),
                                      agent=types.SimpleNamespace(membership=types.SimpleNamespace(members={"x": None}),
                                                                  order=lambda *words: taken.append(words)), history=mock.Mock())
        for words in ({"reason": "\udcff"}, {"reason": "\x1b[2J"}, {"reason": "a\nb"}, {"by": "\udcff"}):
            with self.assertRaisesRegex(AgentError, "cannot be printed"):
                await operations.Operations(whole).answer(query.Caller(uid=0), "order", {"node": "x", "order": "drain", **words})
        self.assertEqual((taken, whole.history.mock_calls), ([], []))

    async def test_a_number_of_events_is_a_number(self):
        whole = types.SimpleNamespace(roles=types.SimpleNamespace(of=lambda _: roles.LOOK), reports=mock.Mock(), view=mock.Mock())
        asked = operations.Operations(whole)
        with mock.patch.object(asked, "refresh_endpoints", mock.AsyncMock()):
            for number in (float("inf"), float("nan"), -1, "7", None, True):
                with self.assertRaisesRegex(AgentError, "whole number"):
                    await asked.answer(query.Caller(uid=0), "status", {"wait": False, "history": number})
            await asked.answer(query.Caller(uid=0), "status", {"wait": False, "history": 7})
        whole.view.everything.assert_called_once_with(7)


class Ranks(unittest.IsolatedAsyncioTestCase):
    """What cluster-why gets from the agents."""

    async def asyncSetUp(self):
        members = {name: Member(name, 1, wire.ALIVE, (b"", 0)) for name in ("a", "b", "c")}
        members["c"] = Member("c", 1, wire.DOWN, (b"", 0))
        self.asked = []

        async def ranks():
            return [report.Process("a", 1, uid=0), report.Process("a", 2, uid=7)]

        async def ask_node(name, operation, arguments):
            self.asked.append((name, operation, arguments))
            raise AgentError("it took too long")

        self.operations = operations.Operations(types.SimpleNamespace(
            settings=types.SimpleNamespace(name="a"), roles=types.SimpleNamespace(of=lambda user: roles.LOOK if user != "eve" else roles.NONE),
            agent=types.SimpleNamespace(membership=types.SimpleNamespace(members=members)), ask_node=ask_node,
            survey=types.SimpleNamespace(cards={}, addresses_of=lambda name: [f"10.0.0.{ord(name)}"]), living=lambda: [("b", "10.0.0.98")],
            endpoints=types.SimpleNamespace(ranks=ranks)))

    def caller(self, uid=None, **more):
        return types.SimpleNamespace(uid=uid, user={7: "lea", 8: "eve"}.get(uid, "root"), **more)

    async def test_users_see_their_own_processes_and_root_sees_all(self):
        for uid, pids, request in ((0, [1, 2], {}), (7, [2], {"user": 7})):
            self.asked.clear()
            answer = await self.operations.answer(self.caller(uid), "ranks", {})
            self.assertEqual([process["pid"] for process in answer["nodes"][0]["processes"]], pids)
            self.assertEqual(self.asked, [("b", "ranks", request)], "a node that is down is not asked")
        with self.assertRaisesRegex(AgentError, "eve may not see the cluster"):
            await self.operations.answer(self.caller(8), "ranks", {})

    async def test_nodes_that_do_not_answer_are_named(self):
        answer = await self.operations.answer(self.caller(0), "ranks", {})
        self.assertEqual(answer["seen_from"], "a")
        nodes = [report.read(report.Node, node) for node in answer["nodes"]]
        self.assertEqual([(node.name, node.addresses, node.down, node.trouble) for node in nodes[1:]],
                         [("b", ["10.0.0.98"], False, "it took too long"), ("c", ["10.0.0.99"], True, "")])

    async def test_other_agents_need_a_key(self):
        with self.assertRaisesRegex(AgentError, "needs a key"):
            await self.operations.answer(self.caller(address="10.0.0.98", trusted=False), "ranks", {})
        answer = await self.operations.answer(self.caller(address="10.0.0.98", trusted=True), "ranks", {"user": 7})
        self.assertEqual([process["pid"] for process in answer], [2])


class Keys(unittest.TestCase):
    def read(self, *words, **variables):
        with mock.patch.dict(os.environ, variables):
            return settings.read(["--name", "a", *words]).key_file

    def test_the_key_of_a_job_is_not_that_of_the_agents(self):
        self.assertFalse(self.read())
        self.assertEqual(self.read(CLUSTERD_KEY_FILE="/a"), "/a")
        self.assertEqual(self.read("--key-file", "/b", FI_CLUSTER_KEY_FILE="/a"), "/b")
        self.assertEqual(self.read("--key-file", "", FI_CLUSTER_KEY_FILE="/a"), "")
        with self.assertRaisesRegex(AgentError, "the key of a job"):
            self.read(FI_CLUSTER_KEY_FILE="/a")

    def test_a_node_is_called_as_a_host_is(self):
        for name in ("-x", "", "a b", "n\u00f6de", "a" * 64):
            with self.assertRaisesRegex(AgentError, "--name"):
                settings.read([f"--name={name}"])

    @unittest.skipUnless(os.geteuid() == 0, "only root has files of other users")
    def test_the_key_is_in_a_file_of_root(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "key")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
                file.write("k" * 32)
            self.assertEqual(key.read(path), b"k" * 32)
            os.chown(path, 65534, -1)
            self.assertRaisesRegex(AgentError, "belongs to another user", key.read, path)
            os.mkfifo(path + "2", 0o600)
            self.assertRaisesRegex(AgentError, "not a regular file", key.read, path + "2")


if __name__ == "__main__":
    unittest.main()
