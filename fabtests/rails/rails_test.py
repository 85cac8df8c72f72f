#!/usr/bin/env python3
"""Two virtual nodes with several rails between them: all carry, none is missed when it is cut, and what comes back is used
again. Errors and bytes are judged, times are not."""
import contextlib
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import program  # noqa: E402
from program import ScriptedEndpoint, introduce, talk  # noqa: E402

import nodes  # noqa: E402

MEGABYTE = 1 << 20
MESSAGES = 32  # of a megabyte: enough for every rail to be worth it
LONG = 60  # so that something can be cut meanwhile
LOG_TIMEOUT_SECONDS = 20  # seconds for what is said after some asking
POLLS_MAX = 100  # asked so often, a second passes: rails are asked again in that time


class Network:
    """Two nodes, and what is between them."""

    def __init__(self, rails):
        self.rails = range(rails)
        # Slower than a processor can send, or the fastest rail would do.
        self.name = nodes.make(2, "--rails", str(rails), "--rate", "1gbit", suffix=f"-{rails}")

    def place(self, node):
        return [sys.executable, nodes.VCLUSTER, "exec", "--name", self.name, node]

    def ip(self, node, *words):
        return subprocess.run([*self.place(node), "ip", *words], check=True, capture_output=True, text=True,
                              timeout=60).stdout

    def received(self, number):
        """Bytes that node has received, by rail."""
        shown = {entry["ifname"]: entry for entry in json.loads(self.ip(f"node{number}", "-s", "-json", "link", "show"))}
        return [shown[f"eth{rail}"]["stats64"]["rx"]["bytes"] for rail in self.rails]

    def down(self):
        nodes.vcluster("down", "--name", self.name, capture_output=True)

    def cut(self, rail, how):
        self.ip("switch", "link", "set", f"n2r{rail}", *how)


class Pair:
    """An endpoint on each node that knows the other."""

    def __init__(self, test, network, **settings):
        self.network = network
        self.endpoints = [ScriptedEndpoint(network.place(f"node{number}"), FI_CLUSTER_LINK=program.Options.link, FI_LOG_LEVEL="warn",
                               **settings) for number in (1, 2)]
        for scripted in self.endpoints:
            test.addCleanup(scripted.close)
        introduce(*self.endpoints)

    def talk(self, count, sender=0, size=MEGABYTE):
        talk(self.endpoints[sender], self.endpoints[1 - sender], count, size)

    @contextlib.contextmanager
    def talking(self, count):
        sender, receiver = self.endpoints
        receiver.begin(f"receive {count}")
        sender.begin(f"send {count} {MEGABYTE}")
        yield
        sender.end()
        receiver.end()

    def rails(self):
        """What the first says of its ways to the second: interface to whether it is believed in."""
        answered = program.ask("--all", before=self.network.place("node1"))["processes"]
        endpoints = [endpoint for process in answered for endpoint in process["endpoints"]]
        peers = [peer for endpoint in endpoints for peer in endpoint["peers"] if "rails" in peer]
        assert len(peers) == 1, peers
        return [(rail["interface"], rail["up"]) for rail in peers[0]["rails"]]

    def carriers(self):
        return {interface for interface, up in self.rails() if up}

    def await_carriers(self, test, expected):
        """Talks until just these rails are believed in."""
        for _ in range(POLLS_MAX):
            self.talk(1)
            found = self.carriers()
            if found == expected:
                return
        test.assertEqual(found, expected)

    def left_out(self):
        """Which ways the first has given up, in its own words."""
        return [line for line in self.endpoints[0].log().splitlines() if "does not reach" in line]


class Several:
    """What holds for any number of rails; those of the class."""

    @classmethod
    def setUpClass(cls):
        cls.network = Network(cls.RAILS)
        cls.addClassCleanup(cls.network.down)
        cls.all = {f"eth{rail}" for rail in cls.network.rails}

    def carried(self, pair, sender=0):
        """Bytes that come in by each rail while messages are sent."""
        node = 2 - sender
        before = self.network.received(node)
        pair.talk(MESSAGES, sender)
        return [after - earlier for after, earlier in zip(self.network.received(node), before)]

    def test_all_carry(self):
        pair = Pair(self, self.network)
        pair.await_carriers(self, self.all)
        for sender in (0, 1):
            carried = self.carried(pair, sender)
            self.assertGreaterEqual(sum(carried), MESSAGES * MEGABYTE)
            for rail in self.network.rails:
                self.assertGreater(carried[rail], MESSAGES * MEGABYTE / 100, f"rail {rail} of {carried}")

    def test_none_is_missed(self):
        pair = Pair(self, self.network)
        pair.await_carriers(self, self.all)
        # Unplugged from the switch, which the node cannot see; and without a carrier, which it can.
        for rail in sorted({0, self.RAILS - 1}):  # that of first contact, and one of the others
            for how, back in ((("nomaster",), ("master", f"rail{rail}")), (("down",), ("up",))):
                with self.subTest(rail=rail, how=how[0]):
                    self.one_is_cut(pair, rail, how, back)

    def one_is_cut(self, pair, rail, how, back):
        begin = sum(self.network.received(2))
        with pair.talking(LONG):
            for _ in range(POLLS_MAX):
                if sum(self.network.received(2)) - begin > MEGABYTE:
                    break
            self.network.cut(rail, how)
        pair.await_carriers(self, self.all - {f"eth{rail}"})
        for sender in (0, 1):
            carried = self.carried(pair, sender)
            del carried[rail]
            self.assertGreaterEqual(sum(carried), MESSAGES * MEGABYTE)
        self.network.cut(rail, back)
        pair.await_carriers(self, self.all)
        carried = self.carried(pair)
        self.assertGreater(carried[rail], MESSAGES * MEGABYTE / 100, f"{carried}: it is used again")

    def test_one_that_leads_nowhere_is_left_out_with_a_word(self):
        last = self.RAILS - 1
        self.network.cut(last, ("nomaster",))
        self.addCleanup(self.network.cut, last, ("master", f"rail{last}"))
        pair = Pair(self, self.network)
        pair.await_carriers(self, self.all - {f"eth{last}"})
        until = time.monotonic() + LOG_TIMEOUT_SECONDS
        while not pair.left_out() and time.monotonic() < until:
            pair.talk(1)
        pair.talk(MESSAGES)
        said = pair.left_out()
        self.assertEqual(len(said), 1, said)
        self.assertIn(f"rail eth{last} ", said[0])

    def test_one_rail_if_one_is_wanted(self):
        pair = Pair(self, self.network, FI_CLUSTER_RAILS="none")
        pair.talk(MESSAGES)
        self.assertEqual(pair.rails(), [("eth0", True)])


class TwoRails(Several, unittest.TestCase):
    RAILS = 2


class FourRails(Several, unittest.TestCase):
    RAILS = 4


class ADozenInterfaces(unittest.TestCase):
    """Nodes with three rails and nine interfaces that lead nowhere, equal to the others in everything that can be seen,
    with the same addresses on both nodes."""

    EXTRAS = 9

    def test_those_that_reach_the_peer_are_found(self):
        network = Network(3)
        self.addCleanup(network.down)
        for node in ("node1", "node2"):
            for number in range(self.EXTRAS):
                name = f"extra{number}"
                network.ip(node, "link", "add", name, "type", "veth", "peer", "name", f"{name}far")
                network.ip(node, "address", "add", f"192.168.{number}.1/24", "dev", name)
                for end in (name, f"{name}far"):
                    network.ip(node, "link", "set", end, "up")
        pair = Pair(self, network)
        reaching = {f"eth{rail}" for rail in network.rails}
        pair.await_carriers(self, reaching)
        for sender in (0, 1):
            pair.talk(MESSAGES, sender)
        rails = pair.rails()
        self.assertEqual(pair.carriers(), reaching)
        self.assertLessEqual(len(rails), 8, rails)
        said = [line.split("does not reach")[0] for line in pair.left_out()]
        self.assertEqual(len(said), len(set(said)), "each is told of once")


if __name__ == "__main__":
    program.prepare(__doc__)
    nodes.prepare()
    unittest.main(argv=sys.argv[:1], verbosity=2)
