"""What an agent accepts from the network, with and without a key: which messages pass the gate, which actions and
incarnations count, and to which addresses it sends long answers. No message crashes it.
"""
import asyncio
import os
import random
import sys
import time
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib import interpreter  # noqa: E402

try:
    interpreter.with_packages(install=False)
except interpreter.AgentError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from clusterd_lib import daemon  # noqa: E402
from clusterd_lib.protocol import discovery, wire  # noqa: E402
from clusterd_lib.protocol.agent import Agent  # noqa: E402

TAG, KEY = wire.tag("c"), b"k" * 16


def address(last):
    return bytes([10, 0, 0, last]), 7947


class Network:
    """Records what one agent sends, and passes messages to it through the gate."""

    def __init__(self, name="node1", key_bytes=b"", highest=lambda: wire.NUMBER_MAX):
        self.sent, self._key, self.now = [], key_bytes, 1.0
        self.agent = Agent(name, address(1), 1000, random.Random(1), self, lambda change: None, highest)
        self.agent.start(0.0)

    def send(self, to, message):
        self.sent.append((to, message, len(wire.encode(message, TAG, self._key))))

    def hello(self, message):
        wire.encode(message, TAG, self._key)

    def arrive(self, kind, *records, sender="x", at=66, **more):
        data = wire.encode(wire.Message(kind, 0, sender, "node1", 0, records, **more), TAG, self._key)
        self.agent.receive(wire.decode(data, TAG, self._key), address(at), self.now)
        return len(data)

    def run_for(self, seconds):
        until = self.now + seconds
        while self.now < until:
            self.now = max(self.now, min(until, self.agent.next_deadline()))
            self.agent.run(self.now)

    def state(self, name):
        return self.agent.membership.members[name].state


class Datagrams(unittest.TestCase):
    def test_orders_of_other_nodes_count_with_a_key_only(self):
        order = wire.Record("node2", 1, wire.ALIVE, address(2), "", wire.ISOLATE, 7, "by no operator")
        for key_bytes, state in ((KEY, "isolated"), (b"", "up")):
            for known in (False, True):
                network = Network(key_bytes=key_bytes)
                if known:
                    network.arrive(wire.GOSSIP, wire.Record("node2", 1, wire.ALIVE, address(2)))
                network.arrive(wire.GOSSIP, order)
                self.assertEqual(network.state("node2"), state)

    def refused(self, reason, **changed):
        said = wire.Record("node2", 1, wire.ALIVE, address(2))._replace(**changed)
        for key_bytes in (b"", KEY):
            with self.assertRaisesRegex(wire.Rejected, reason):
                wire.decode(wire.encode(wire.Message(wire.GOSSIP, 0, "x", "", 0, (said,)), TAG, key_bytes), TAG, key_bytes)

    def test_numbers_addresses_and_names_that_no_agent_sends_do_not_pass(self):
        self.refused("number too large", incarnation=2**32 - 1)
        self.refused("number too large", order=wire.DRAIN, order_stamp=2**32 - 1)
        self.refused("no IPv4 address", address=(bytes(16), 7947))
        for name in ("--help", "-x", "a b", "a/b", "a\u0301", "n\u00f6de", "a;b", "a,b", "a|b", "a[1-9]", ".", "a.", "<b>"):
            self.refused("no name of a node", name=name)
            for message in (wire.Message(wire.PING, 1, name, "node1"), wire.Message(wire.PING, 1, "node1", name)):
                with self.assertRaisesRegex(wire.Rejected, "no name of a node"):
                    wire.decode(wire.encode(message, TAG), TAG)

    def test_an_order_after_the_highest_stamp_can_be_sent(self):
        network = Network(key_bytes=KEY)
        network.arrive(wire.GOSSIP, wire.Record("node2", 1, wire.ALIVE, address(2), "", wire.DRAIN, wire.NUMBER_MAX, "a lie"))
        network.agent.order("node2", wire.ISOLATE, "", network.now)
        wire.decode(wire.encode(wire.Message(wire.GOSSIP, 0, "node1", "", 0, (network.agent.membership.members["node2"].record(),)),
                                TAG, KEY), TAG, KEY)

    def test_no_incarnation_stops_an_agent(self):
        for incarnation in (wire.NUMBER_MAX, 2**31):
            network = Network()
            network.arrive(wire.GOSSIP, wire.Record("node2", 1, wire.ALIVE, address(2)),
                           wire.Record("node1", incarnation, wire.SUSPECT, address(1), "x"))
            network.run_for(30)
            self.assertGreater(len(network.sent), 10)
            for _, message, _ in network.sent:
                wire.decode(wire.encode(message, TAG), TAG)

    def test_without_a_key_an_incarnation_is_near_the_present(self):
        seconds = 1_700_000_000
        network = Network(highest=lambda: seconds)
        for incarnation, believed in ((wire.NUMBER_MAX, False), (seconds + 1, False), (seconds, True)):
            network.arrive(wire.GOSSIP, wire.Record("node1", incarnation, wire.DOWN, address(1), "a lie"),
                           wire.Record("node2", incarnation, wire.DOWN, address(2), "a lie"))
            self.assertEqual(network.agent.membership.me.incarnation > 1000, believed)
            self.assertEqual("node2" in network.agent.membership.members, believed)
        for key_bytes, highest in ((KEY, wire.NUMBER_MAX), (b"", int(time.time()) + daemon.AHEAD_SECONDS)):
            found = daemon.Daemon._highest_incarnation(types.SimpleNamespace(key=key_bytes))  # pylint: disable=protected-access
            self.assertLessEqual(abs(found - highest), 100)


class Pages(unittest.TestCase):
    def setUp(self):
        self.network = Network(key_bytes=KEY)
        for number in range(2, 62):
            self.network.arrive(wire.GOSSIP, wire.Record(f"node{number}", 1, wire.ALIVE, address(number)))
        self.network.sent.clear()

    def pages(self):
        found = [(to, size) for to, message, size in self.network.sent if message.kind == wire.PAGE]
        self.network.sent.clear()
        return found

    def test_a_page_goes_to_the_address_of_a_known_node_wherever_the_question_seems_to_come_from(self):
        self.network.arrive(wire.PULL, sender="unknown", padding=500)
        self.assertEqual(self.pages(), [])
        self.network.arrive(wire.PULL, sender="node7", at=66, padding=500)
        self.assertEqual([to for to, _ in self.pages()], [address(7)])
        self.network.arrive(wire.GOSSIP, wire.Record("node7", 1, wire.DOWN, address(7), "no answer"))
        self.network.arrive(wire.PULL, sender="node7", padding=500)
        self.assertEqual(self.pages(), [])

    def test_a_page_is_at_most_three_times_as_long_as_its_question(self):
        for padding in (0, 50, 100, 200, 300, 1000):
            asked = self.network.arrive(wire.PULL, sender="node7", padding=padding)
            for _, size in self.pages():
                self.assertLessEqual(size, 3 * asked)

    def test_pages_are_bounded_in_time(self):
        for _ in range(1000):
            self.network.arrive(wire.PULL, sender="node7", padding=300)
        self.assertEqual(len(self.pages()), discovery.PAGES_AT_ONCE)
        self.network.now += 1
        for _ in range(1000):
            self.network.arrive(wire.PULL, sender="node7", padding=300)
        self.assertEqual(len(self.pages()), discovery.PAGES_PER_SECOND)

    def test_a_question_is_worth_a_whole_page_and_says_where_the_page_has_to_go(self):
        young = Network("young", KEY)
        young.arrive(wire.HELLO, wire.Record("node1", 1000, wire.ALIVE, address(1)), sender="node1")
        _, question, size = next(entry for entry in young.sent if entry[1].kind == wire.PULL)
        self.assertEqual(size, discovery.PULL_BYTES + wire.SIGNATURE_BYTES)
        self.network.agent.receive(question, address(9), 1.0)
        self.assertEqual([to for to, _ in self.pages()], [address(1)])  # as all agents of this test
        self.assertEqual(discovery.ANSWER_TIMES_MAX * discovery.PULL_BYTES, wire.DATAGRAM_BYTES_MAX)


class Work(unittest.IsolatedAsyncioTestCase):
    async def test_what_fails_begins_anew(self):
        begun = asyncio.Queue()

        async def fail():
            begun.put_nowait(1)
            raise KeyError("speed")

        with mock.patch.object(daemon, "FAILED_SECONDS", 0), mock.patch.object(daemon, "sys"):
            work = asyncio.ensure_future(daemon.Daemon._again_and_again(fail))  # pylint: disable=protected-access
            for _ in range(3):
                await asyncio.wait_for(begun.get(), 10)
            work.cancel()


class Failing:
    """An agent or a monitor that raises an error at every turn."""

    def __init__(self):
        self.turns, self.detector = 0, types.SimpleNamespace(late=lambda: None)

    def next_deadline(self):
        return 0.0

    def run(self, _now):
        self.turns += 1
        raise ValueError("a turn that fails")

    receive = on_reply = lambda self, *_: self.run(0)


class Timer(unittest.TestCase):
    def test_a_turn_that_fails_is_not_the_last_nor_repeated_at_once(self):
        asked, failing, timer = [], Failing(), types.SimpleNamespace(cancel=lambda: None)
        loop = types.SimpleNamespace(time=lambda: 100.0, call_at=lambda at, call: asked.append(at) or timer)
        half = types.SimpleNamespace(agent=failing, survey=types.SimpleNamespace(monitor=failing), _loop=loop, _timer=None, _due=0.0,
                                     settings=types.SimpleNamespace(name="a"), _run=None)
        gossip = wire.Message(wire.GOSSIP, 0, "x")
        for name in ("_arm", "_take"):
            setattr(half, name, types.MethodType(getattr(daemon.Daemon, name), half))
        with mock.patch.object(daemon.time, "monotonic", lambda: 100.0):
            with self.assertRaisesRegex(ValueError, "a turn that fails"):
                daemon.Daemon._received(half, gossip, ("10.0.0.66", 7947), 0, False)  # pylint: disable=protected-access
            self.assertEqual(asked, [100.0])
            half._timer = None
            with self.assertRaisesRegex(ValueError, "a turn that fails"):
                daemon.Daemon._run(half)  # pylint: disable=protected-access
            self.assertEqual(asked, [100.0, 100.0 + daemon.FAILED_SECONDS])


if __name__ == "__main__":
    unittest.main()
