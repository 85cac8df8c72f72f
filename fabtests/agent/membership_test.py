"""Simulates the membership protocol of clusterd: what its agents find out, how fast, and how much they send.

    membership_test.py [--hour]     --hour: an hour of 1,000 agents instead of minutes of fewer
"""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib.protocol import detector, membership, suspicion, traffic, wire  # noqa: E402
from clusterd_lib.protocol.gossip import Gossip  # noqa: E402
from clusterd_lib.protocol.simulation import KEY, TAG, Network  # noqa: E402

DETECTION_SECONDS = 5.0
HOUR = "--hour" in sys.argv
ADDRESS = (bytes([10, 0, 0, 1]), 7946)


def record(name="b", incarnation=1, status=wire.ALIVE, **more):
    return wire.Record(name, incarnation, status, ADDRESS, **more)


def downs(network):
    return [change for _, change in network.changes if change.new == membership.DOWN]


def down_everywhere_after(network, dead):
    """Seconds until every living agent knows that these are down."""
    killed_at = network.now
    for number in dead:
        network.kill(number)
    while network.now < killed_at + 2 * DETECTION_SECONDS:
        network.run(network.now + 0.1)
        if all(state == membership.DOWN for number in dead for state in network.states(number)):
            return network.now - killed_at
    return float("inf")


class Wire(unittest.TestCase):
    def test_what_is_encoded_is_decoded(self):
        message = wire.Message(wire.GOSSIP, 7, "node1", "node2", 3, (
            record("n.o_d-e", wire.NUMBER_MAX, wire.SUSPECT, reason="node9", order=wire.DRAIN, order_stamp=5, order_reason="na\u00efve"),
            wire.Record("9", 1, wire.DOWN, (bytes(range(4)), 1))), 40)
        self.assertEqual(wire.decode(wire.encode(message, TAG, KEY), TAG, KEY), message)
        without = message._replace(records=tuple(said._replace(order=wire.NO_ORDER, order_stamp=0, order_reason="")
                                                 for said in message.records))
        self.assertEqual(wire.decode(wire.encode(message, TAG), TAG), without)

    def rejected(self, data, reason, key=KEY):
        with self.assertRaisesRegex(wire.Rejected, reason):
            wire.decode(data, TAG, key)

    def test_the_gate_refuses(self):
        message = wire.Message(wire.PING, 1, "node1", "node2", 0, (record(),))
        good = wire.encode(message, TAG, KEY)
        self.rejected(wire.encode(message, TAG), "wrong signature")
        self.rejected(wire.encode(message, TAG, b"another key"), "wrong signature")
        self.rejected(good[:30], "no signature")
        self.rejected(wire.encode(message, TAG + 1, KEY), "another cluster")
        self.rejected(b"HTTP/1.1 200 OK", "not of an agent")
        later = bytearray(good[:-wire.SIGNATURE_BYTES])
        later[2] += 1
        self.rejected(bytes(later) + wire.sign(KEY, bytes(later)), "another version")
        reason = message._replace(records=(record(reason="a\nb"),))
        self.rejected(wire.encode(reason, TAG, KEY), "control characters")

    def test_no_byte_that_is_flipped_or_missing_passes_or_raises_anything_else(self):
        good = wire.encode(wire.Message(wire.PAGE, 1, "node1", "node2", 0, (record(), record("c"))), TAG)
        chance = random.Random(1)
        for _ in range(5000):
            data = bytearray(good[:chance.randrange(len(good) + 1)])
            for _ in range(chance.randrange(4)):
                if data:
                    data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                wire.decode(bytes(data), TAG)
            except wire.Rejected:
                pass


class Table(unittest.TestCase):
    def setUp(self):
        self.changes = []
        self.table = membership.Membership("a", ADDRESS, 1, self.changes.append)
        self.table.merge(record(), 0)

    def state(self):
        return self.table.members["b"].state

    def test_worse_news_of_the_same_incarnation_counts_and_better_needs_a_higher_one(self):
        self.assertTrue(self.table.merge(record(status=wire.SUSPECT, reason="c"), 1))
        self.assertFalse(self.table.merge(record(), 2))
        self.assertEqual(self.state(), "suspect")
        self.assertTrue(self.table.merge(record(incarnation=2), 3))
        self.assertEqual(self.state(), "up")

    def test_a_node_that_comes_back_is_returned_for_a_minute(self):
        self.table.merge(record(status=wire.DOWN, reason="no answer"), 1)
        self.assertEqual((self.state(), self.table.members["b"].since), ("down", 1))
        self.table.merge(record(incarnation=2), 5)
        self.assertEqual(self.state(), "returned")
        self.table.run(5 + membership.RETURNED_SECONDS)
        self.assertEqual(self.state(), "up")
        self.assertEqual([change.new for change in self.changes], ["up", "down", "returned", "up"])

    def test_a_node_refutes_what_is_said_of_it(self):
        self.assertTrue(self.table.merge(record("a", 1, wire.SUSPECT, reason="c"), 1))
        self.assertEqual((self.table.me.incarnation, self.table.me.status), (2, wire.ALIVE))

    def test_the_latest_order_counts(self):
        self.table.order("b", wire.ISOLATE, "broken card", 1)
        self.assertEqual(self.state(), "isolated")
        self.assertFalse(self.table.merge(record(), 2))
        self.assertEqual(self.state(), "isolated")
        self.table.order("b", wire.NO_ORDER, "", 3)
        self.assertEqual(self.state(), "up")

    def test_memory_is_bounded(self):
        for number in range(membership.MEMBERS_MAX + 10):
            self.table.merge(record(f"node{number}"), 1)
        self.assertEqual(len(self.table.members), membership.MEMBERS_MAX)


class Parts(unittest.TestCase):
    def test_suspicion_is_shorter_when_others_confirm(self):
        alone = suspicion.Suspicion("a", 10.0, 100)
        self.assertEqual(alone.deadline, 10.0 + suspicion.SECONDS_MAX)
        for number, by in enumerate("bcd"):
            self.assertTrue(alone.confirm(by))
            self.assertFalse(alone.confirm(by), number)
        self.assertAlmostEqual(alone.deadline, 10.0 + suspicion.SECONDS_MIN)

    def test_the_node_after_a_silent_successor_is_probed_in_the_same_period_and_suspects_are_passed_over(self):
        table = membership.Membership("a", ADDRESS, 1, lambda change: None)
        for name in "bcde":
            table.merge(record(name), 0)
        table.merge(record("b", status=wire.SUSPECT, reason="e"), 0)
        sent = []
        ring = detector.Detector(table, random.Random(1), lambda _a, kind, _s, target, *_: sent.append((kind, target)), lambda *_: None)
        ring.start(0)
        ring._random_at = float("inf")  # pylint: disable=protected-access
        ring.run(detector.PERIOD)
        self.assertEqual(sent, [(wire.PING, "c")])
        ring.run(detector.PERIOD + detector.ACK_TIMEOUT)
        self.assertIn((wire.PING, "d"), sent)
        ring.health = 1  # this agent may be the slow one, so it must not ask ever more nodes
        ring.run(detector.PERIOD + 2 * detector.ACK_TIMEOUT)
        self.assertNotIn((wire.PING, "e"), sent)

    def test_gossip_ends(self):
        gossip = Gossip()
        gossip.add(record(), 1000)
        times = 0
        while gossip.take(4):
            times += 1
        self.assertEqual(times, 30)


class Simulated(unittest.TestCase):
    """1 % of all messages are lost."""

    def network(self, nodes, seed=1, **more):
        network = Network(nodes, seed, **more)
        network.know_each_other()
        return network

    def test_traffic_at_rest_is_within_the_bound(self):
        for nodes, seconds in ((10, 120), (100, 30)) if not HOUR else ((1000, 120),):
            network = self.network(nodes)
            network.run(seconds)
            self.assertEqual(downs(network), [])
            sent, bound = network.bytes_sent / nodes / seconds, traffic.at_rest(nodes)
            print(f"{nodes} nodes: {sent:.0f} B/s a node, bound {bound:.0f}")
            self.assertLess(sent, bound)
            self.assertGreater(sent, bound / 3, "the bound says nothing")

    def test_the_dead_are_found_and_others_are_not_taken_for_dead(self):
        for nodes, seeds in ((4, 8), (10, 5), (100, 2)) if not HOUR else ((1000, 3),):
            worst = 0
            for seed in range(seeds):
                network = self.network(nodes, seed)
                network.run(2)
                dead = network.random.sample(range(nodes), max(1, nodes // 20))
                before = network.bytes_sent
                worst = max(worst, down_everywhere_after(network, dead))
                sent = (network.bytes_sent - before) / nodes / (network.now - 2)
                self.assertLess(sent, traffic.in_trouble(nodes))
                names = {network.agents[number].name for number in dead}
                self.assertEqual([change for change in downs(network) if change.name not in names], [])
            print(f"{nodes} nodes: down everywhere after {worst:.1f} s at worst")
            self.assertLess(worst, DETECTION_SECONDS)

    def test_no_false_death(self):
        nodes, seconds = (1000, 3600) if HOUR else (50, 300)
        network = self.network(nodes, 7)
        network.run(seconds)
        suspected = sum(change.new == membership.SUSPECT for _, change in network.changes)
        print(f"{nodes} nodes, {seconds} s: {suspected} times suspected, {len(downs(network))} times down")
        self.assertEqual(downs(network), [])

    def test_a_false_suspicion_is_refuted_before_it_can_end_in_a_false_death(self):
        nodes = 1000 if HOUR else 100
        worst = 0
        for seed in range(3):
            network = self.network(nodes, seed)
            network.run(2)
            victim = network.agents[50]
            news = record(victim.name, 1, wire.SUSPECT, reason="node0001")
            network.send(0, 1, wire.Message(wire.GOSSIP, 0, "node0001", "node0002", 0, (news,)))
            started = network.now
            while network.now < started + suspicion.SECONDS_MAX and any(
                    agent.membership.members[victim.name].incarnation < 2 for agent in network.agents):
                network.run(network.now + 0.05)
            worst = max(worst, network.now - started)
            self.assertEqual(set(network.states(50)), {"up"})
        print(f"{nodes} nodes: a suspicion is refuted everywhere after {worst:.2f} s at worst")
        self.assertLess(worst, suspicion.SECONDS_MIN)

    def test_neighbours_that_die_together_are_found_together(self):
        worst = 0
        for seed in range(5):
            network = self.network(100, seed)
            network.run(2)
            worst = max(worst, down_everywhere_after(network, range(40, 45)))
        print(f"five neighbours of 100 nodes: down everywhere after {worst:.1f} s at worst")
        self.assertLess(worst, DETECTION_SECONDS)

    def test_a_broken_pair_is_no_dead_node(self):
        network = self.network(10, loss=0)
        network.cut = {(0, 1), (1, 0)}
        network.run(60)
        self.assertEqual(downs(network), [])

    def test_nodes_that_start_apart_find_each_other_and_a_dead_one_returns(self):
        network = Network(40, 3)
        network.run(20)
        self.assertEqual({len(agent.membership.members) for agent in network.agents}, {40})
        self.assertLess(down_everywhere_after(network, [5]), DETECTION_SECONDS)
        network.restart(5)
        network.run(network.now + 20)
        self.assertEqual(set(network.states(5)), {"returned"})
        self.assertEqual(len(network.agents[5].membership.members), 40)

    def test_two_halves_join_again(self):
        network = self.network(12, 4)
        network.cut = {(a, b) for a in range(12) for b in range(12) if (a < 6) != (b < 6)}
        network.run(20)
        self.assertEqual(set(network.agents[0].membership.living()), {f"node{n:04}" for n in range(2, 7)})
        network.cut = set()
        network.run(80)
        self.assertEqual({len(agent.membership.living()) for agent in network.agents}, {11})

    def test_an_isolated_node_is_refused_and_rejoins(self):
        network = self.network(10, 5)
        network.run(2)
        network.agents[3].order("node0008", wire.ISOLATE, "broken card", network.now)
        network.run(6)
        self.assertEqual(set(network.states(7)), {"isolated"})
        # Others believe nothing that it says about other nodes.
        lie = record("node0002", 99, wire.DOWN, reason="a lie")
        network.send(7, 0, wire.Message(wire.GOSSIP, 0, "node0008", "", 0, (lie,)))
        network.send(7, 0, wire.Message(wire.PING, 0, "node0008", "node0001", 0, (lie,)))
        network.run(10)
        self.assertEqual(set(network.states(1)), {"up"})
        # It cannot lift its isolation itself.
        network.agents[7].order("node0008", wire.NO_ORDER, "", network.now)
        network.run(14)
        self.assertEqual({network.agents[n].membership.members["node0008"].state for n in range(10) if n != 7}, {"isolated"})
        network.agents[0].order("node0008", wire.NO_ORDER, "", network.now)
        network.run(40)
        self.assertEqual(set(network.states(7)), {"up"})


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--hour"])
