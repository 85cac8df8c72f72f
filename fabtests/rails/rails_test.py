#!/usr/bin/env python3
"""Two virtual nodes with several rails between them: all carry, no message is lost when one is cut, and a rail that works
again is used again. Errors and bytes are compared, times are not."""
import contextlib
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
from endpoint_program import ScriptedEndpoint, attempts, connect, query, transfer, virtual_nodes  # noqa: E402

MEGABYTE = 1 << 20
MESSAGES = 32  # of a megabyte: enough for each rail to carry a share
LONG = 60  # messages: long enough to cut a rail meanwhile


class Network:
    """Two nodes with rails of 1 Gbit/s: slower than a processor can send, or the fastest rail alone would do."""

    def __init__(self, rails):
        self.rails = range(rails)
        self.cluster = virtual_nodes.make(2, "--rails", str(rails), "--rate", "1gbit", suffix=f"-{rails}")

    def received(self, node):
        """Bytes that the node has received, by rail."""
        shown = self.cluster.links(node)
        return [shown[f"eth{rail}"]["stats64"]["rx"]["bytes"] for rail in self.rails]

    def cut(self, rail, how):
        self.cluster.run("switch", "ip", "link", "set", f"n2r{rail}", *how)


class Pair:
    """An endpoint on each node that knows the other."""

    def __init__(self, test, network, **settings):
        self.network = network
        self.endpoints = [ScriptedEndpoint(network.cluster.command(node), FI_CLUSTER_LINK=endpoint_program.Options.link,
                                           FI_LOG_LEVEL="warn", **settings) for node in (1, 2)]
        for scripted in self.endpoints:
            test.addCleanup(scripted.close)
        connect(*self.endpoints)

    def transfer(self, count, sender=0, size=MEGABYTE):
        transfer(self.endpoints[sender], self.endpoints[1 - sender], count, size)

    @contextlib.contextmanager
    def transferring(self, count):
        sender, receiver = self.endpoints
        receiver.begin(f"receive {count}")
        sender.begin(f"send {count} {MEGABYTE}")
        yield
        sender.end()
        receiver.end()

    def paths(self, node):
        """The paths of the node's endpoint to the other, as cluster-info shows them."""
        answered = query("--all", before=self.network.cluster.command(node))["processes"]
        endpoints = [endpoint for process in answered for endpoint in process["endpoints"]]
        peers = [peer for endpoint in endpoints for peer in endpoint["peers"] if "rails" in peer]
        assert len(peers) == 1, peers
        return peers[0]["rails"]

    def rails(self, node=1):
        """Interface and state (up or not) of each path."""
        return [(path["interface"], path["up"]) for path in self.paths(node)]

    def carriers(self):
        """The interfaces of the paths that are up, for each endpoint. Only paths along one rail count: if the first answer is
        late, an endpoint tries the peer's first address from its other interfaces, too, and such a path outlives that rail."""
        def along(path):
            return path["to"].split(".")[2] == path["interface"].removeprefix("eth")

        return [{path["interface"] for path in self.paths(node) if path["up"] and along(path)} for node in (1, 2)]

    def await_carriers(self, test, expected):
        """Sends messages in both directions until both endpoints report exactly these rails up. Each validates its own paths."""
        for _ in attempts():
            for sender in (0, 1):
                self.transfer(1, sender)
            found = self.carriers()
            if found == [expected, expected]:
                return
        test.assertEqual(found, [expected, expected])

    def left_out(self):
        """Log lines of the first endpoint about rails that do not reach the second."""
        return [line for line in self.endpoints[0].log().splitlines() if "does not reach" in line]


class SeveralRails:
    """Tests for any number of rails; subclasses set RAILS."""

    @classmethod
    def setUpClass(cls):
        cls.network = Network(cls.RAILS)
        cls.addClassCleanup(cls.network.cluster.down)
        cls.all = {f"eth{rail}" for rail in cls.network.rails}

    def carried(self, pair, sender=0):
        """Bytes received on each rail while messages are sent."""
        node = 2 - sender
        before = self.network.received(node)
        pair.transfer(MESSAGES, sender)
        return [after - earlier for after, earlier in zip(self.network.received(node), before)]

    def test_all_carry(self):
        pair = Pair(self, self.network)
        pair.await_carriers(self, self.all)
        for sender in (0, 1):
            # A rail whose last round trip was slow, on a busy machine, is measured again after 100 ms. A transfer takes as long.
            for _ in attempts():
                carried = self.carried(pair, sender)
                self.assertGreaterEqual(sum(carried), MESSAGES * MEGABYTE, f"node{sender + 1} sends")
                if min(carried) > MESSAGES * MEGABYTE / 100:
                    break
            self.assertGreater(min(carried), MESSAGES * MEGABYTE / 100, f"node{sender + 1} sends: {carried}")

    def test_no_message_is_lost_when_a_rail_is_cut(self):
        pair = Pair(self, self.network)
        pair.await_carriers(self, self.all)
        # Unplugged from the switch, which the node cannot see; and without a carrier, which it can.
        for rail in sorted({0, self.RAILS - 1}):  # that of the first frame, and one of the others
            for how, back in ((("nomaster",), ("master", f"rail{rail}")), (("down",), ("up",))):
                with self.subTest(rail=rail, how=how[0]):
                    self.one_is_cut(pair, rail, how, back)

    def one_is_cut(self, pair, rail, how, back):
        begin = sum(self.network.received(2))
        with pair.transferring(LONG):
            for _ in attempts():
                if sum(self.network.received(2)) - begin > MEGABYTE:
                    break
            self.network.cut(rail, how)
        pair.await_carriers(self, self.all - {f"eth{rail}"})
        for sender in (0, 1):
            carried = self.carried(pair, sender)
            del carried[rail]
            self.assertGreaterEqual(sum(carried), MESSAGES * MEGABYTE, f"node{sender + 1} sends")
        self.network.cut(rail, back)
        pair.await_carriers(self, self.all)
        for _ in attempts():  # a rail that is back counts as slow until it has been measured again
            carried = self.carried(pair)
            if carried[rail] > MESSAGES * MEGABYTE / 100:
                break
        self.assertGreater(carried[rail], MESSAGES * MEGABYTE / 100, f"{carried}: the rail is used again")

    def test_a_rail_that_does_not_reach_the_peer_is_logged_once(self):
        last = self.RAILS - 1
        self.network.cut(last, ("nomaster",))
        self.addCleanup(self.network.cut, last, ("master", f"rail{last}"))
        pair = Pair(self, self.network)
        pair.await_carriers(self, self.all - {f"eth{last}"})
        for _ in attempts():
            if pair.left_out():
                break
            pair.transfer(1)
        pair.transfer(MESSAGES)
        lines = pair.left_out()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f" (eth{last}) does not reach ", lines[0])

    def test_one_rail_with_rails_none(self):
        pair = Pair(self, self.network, FI_CLUSTER_RAILS="none")
        pair.transfer(MESSAGES)
        self.assertEqual(pair.rails(), [("eth0", True)])


class TwoRails(SeveralRails, unittest.TestCase):
    RAILS = 2


class FourRails(SeveralRails, unittest.TestCase):
    RAILS = 4


class ADozenInterfaces(unittest.TestCase):
    """Nodes with three rails and nine interfaces that reach no other node but look the same, with the same addresses on both
    nodes."""

    EXTRAS = 9

    def test_those_that_reach_the_peer_are_found(self):
        network = Network(3)
        self.addCleanup(network.cluster.down)
        ip = network.cluster.run
        for node in (1, 2):
            for number in range(self.EXTRAS):
                name = f"extra{number}"
                ip(node, "ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}far")
                ip(node, "ip", "address", "add", f"192.168.{number}.1/24", "dev", name)
                for end in (name, f"{name}far"):
                    ip(node, "ip", "link", "set", end, "up")
        pair = Pair(self, network)
        reaching = {f"eth{rail}" for rail in network.rails}
        pair.await_carriers(self, reaching)
        for sender in (0, 1):
            pair.transfer(MESSAGES, sender)
        rails = pair.rails()
        self.assertEqual(pair.carriers(), [reaching, reaching])
        self.assertLessEqual(len(rails), 8, rails)
        lines = [line.split("does not reach")[0] for line in pair.left_out()]
        self.assertEqual(len(lines), len(set(lines)), "each is logged once")


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
