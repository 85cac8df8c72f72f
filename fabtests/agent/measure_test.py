"""What an agent measures and notices: links, wiring, clocks; and how cluster-status shows it as text and as a
picture."""
import collections
import os
import random
import re
import socket
import sys
import tempfile
import time
import types
import unittest
import xml.etree.ElementTree
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib import interpreter, key  # noqa: E402

try:
    interpreter.with_packages(install=False)
except interpreter.AgentError as error:
    print(f"skipped: {error}")
    sys.exit(77)

from clusterd_lib import query, survey  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402
from clusterd_lib.measure import clock, findings, links, rails  # noqa: E402
from clusterd_lib.protocol import traffic, wire  # noqa: E402
from clusterd_lib.status import matrix, text, topology  # noqa: E402


class Wire:
    """Links over a network with loss, delay and an MTU."""

    def __init__(self, loss=0.0, delay=0.001, largest=9000):
        self.now, self.loss, self.delay, self.largest = 0.0, loss, delay, largest
        self.random, self.flying, self.changes, self.sent = random.Random(1), [], [], 0
        self.monitor = links.LinkMonitor(self.send, lambda link, old: self.changes.append((link.state, self.now)))

    def send(self, _rail, address, sequence, size):
        self.sent += 1
        if self.random.random() >= self.loss and size <= self.largest:
            self.flying.append((self.now + self.delay, sequence, address[0]))

    def run(self, until):
        while True:
            at = min([self.monitor.next_deadline()] + [arrival for arrival, _, _ in self.flying])
            if at > until:
                self.now = until
                return
            self.now = max(at, self.now)
            for flying in [entry for entry in self.flying if entry[0] <= self.now]:
                self.flying.remove(flying)
                self.monitor.on_reply(flying[1], flying[2], self.now)
            self.monitor.run(self.now)


class Links(unittest.TestCase):
    def link(self, wire, mtu=9000):
        wire.monitor.set_peer("b", [(0, "b", 7947, mtu)], 0.0)
        return wire.monitor.links["b", 0]

    def test_round_trip_and_loss(self):
        wire = Wire(loss=0.1, delay=0.002)
        link = self.link(wire)
        wire.run(200)
        self.assertAlmostEqual(link.rtt, 0.002, delta=1e-6)
        self.assertGreater(link.loss, 0.02)
        self.assertLess(link.loss, 0.25)
        self.assertEqual((link.state, link.path_mtu), ("up", 9000))

    def test_a_cut_link_is_down_within_two_seconds_and_up_again(self):
        wire = Wire()
        self.link(wire)
        wire.run(10.5)
        wire.loss = 1
        wire.run(20)
        wire.loss = 0
        wire.run(30)
        self.assertEqual([state for state, _ in wire.changes], ["up", "down", "up"])
        self.assertLess(wire.changes[1][1], 12.5)

    def test_a_link_that_is_cut_before_a_long_echo_is_down_as_soon(self):
        for cut_at in range(10, 30):
            wire = Wire()
            self.link(wire)
            wire.run(cut_at + 0.5)
            wire.loss = 1
            wire.run(cut_at + 10)
            self.assertLess(wire.changes[1][1], cut_at + 0.5 + 2.3)

    def test_the_path_mtu_is_found(self):
        wire = Wire(largest=1500)
        link = self.link(wire)
        wire.run(60)
        self.assertEqual((link.state, link.path_mtu, link.loss), ("up", 1500, 0))
        self.assertEqual([entry["kind"] for entry in findings.of_links([link.describe()])], ["path-mtu"])

    def test_answers_of_a_busy_node_come_late_and_are_not_lost(self):
        wire = Wire()
        link = self.link(wire)
        wire.run(10)
        for second in range(10, 200):
            wire.delay = 0.8 if second % 4 else 0.001
            wire.run(second)
            self.assertEqual((link.loss, link.path_mtu, matrix.quality(link.describe())), (0, 9000, "good"))
        self.assertAlmostEqual(link.rtt, 0.001, delta=1e-6)
        wire.delay, wire.loss = 0.001, 0.5
        wire.run(230)
        self.assertGreater(link.loss, 0.1)

    def test_a_smaller_path_mtu_is_not_for_ever(self):
        wire = Wire(largest=1500)
        link = self.link(wire)
        wire.run(700)
        self.assertEqual(link.path_mtu, 1500)
        wire.largest = 9000
        wire.run(1400)
        self.assertEqual((link.state, link.path_mtu, link.loss), ("up", 9000, 0))

    def test_echoes_are_bounded_however_many_links_there_are(self):
        wire = Wire()
        for peer in range(999):
            wire.monitor.set_peer(f"node{peer}", [(rail, f"node{peer}", 7947, 1500) for rail in range(2)], 0.0)
        wire.run(20)
        self.assertLessEqual(wire.sent / 20, links.ECHOES_PER_SECOND + 0.1)

    def test_a_message_takes_another_rail_while_one_is_in_question(self):
        wire = Wire()
        wire.monitor.set_peer("b", [(0, "b", 7947, 1500), (1, "b", 7947, 1500)], 0.0)
        wire.run(5)
        self.assertEqual([link.rail for link in wire.monitor.usable("b")], [0])
        wire.monitor.links["b", 0].lost_in_a_row = 1
        self.assertEqual([link.rail for link in wire.monitor.usable("b")], [0, 1])


def card(name, *networks, **more):
    rails = [{"device": f"eth{number}", "address": f"{network}.1", "network": f"{network}.0/24", "mtu": 1500, "speed": 1000,
              "duplex": "full", "up": True} for number, network in enumerate(networks)]
    rails[0].update(more)
    return {"name": name, "port": 7947, "rails": rails}


class Findings(unittest.TestCase):
    def kinds(self, odd):
        usual = [card(name, "10.0.0", "10.0.1") for name in ("a", "b", "c")]
        self.assertEqual(findings.of_cards(usual), [])
        found = findings.of_cards(usual + [odd])
        self.assertEqual({entry["node"] for entry in found}, {"d"})
        return [entry["kind"] for entry in found]

    def test_settings_that_differ(self):
        self.assertEqual(self.kinds(card("d", "10.0.0", "10.0.1", mtu=9000)), ["mtu"])
        self.assertEqual(self.kinds(card("d", "10.0.0", "10.0.1", speed=100)), ["speed"])
        self.assertEqual(self.kinds(card("d", "10.0.0", "10.0.1", duplex="half")), ["duplex"])
        self.assertEqual(self.kinds(card("d", "10.0.0", "10.0.1", up=False)), ["carrier"])
        self.assertEqual(self.kinds(card("d", "10.0.1", "10.0.0")), ["order", "order"])

    def test_a_crossed_cable(self):
        me, peer = card("a", "10.0.0", "10.0.1"), card("b", "10.0.0", "10.0.1")
        self.assertEqual(findings.of_hellos(me, {"b": peer}, {("b", 0): [0], ("b", 1): [1]}), [])
        found = findings.of_hellos(me, {"b": peer}, {("b", 0): [1], ("b", 1): [0]})
        self.assertEqual([entry["kind"] for entry in found], ["cable", "cable"])


class Cards(unittest.TestCase):
    def survey(self):
        self.transport = types.SimpleNamespace(names_of={}, refused=collections.Counter(), send_echo=lambda *_: None)
        seen = survey.Survey(types.SimpleNamespace(name="a", port=7947), b"", self.transport, None, None)
        seen.rails = card("a", "10.0.0", "10.0.1")["rails"]
        return seen

    def test_a_node_is_reached_by_all_rails_after_it_was_down_and_by_its_hello_before_it_has_named_any(self):
        seen = self.survey()
        self.assertEqual(seen.routes("b"), [])
        hello = wire.Message(wire.HELLO, 0, "b", "", 1, (wire.Record("b", 1, wire.ALIVE, (bytes([10, 0, 0, 9]), 7947)),))
        seen.on_hello(hello, 1, ("10.0.1.9", 7947), 0)
        self.assertEqual(self.transport.names_of, {("10.0.0.9", 7947): "b"})
        self.assertEqual(seen.routes("b"), [(1, ("10.0.1.9", 7947))])
        self.assertEqual(seen.address_of("b"), "10.0.1.9")
        seen.set_card("b", card("b", "10.0.0", "10.0.1"))
        seen.monitor.links["b", 0].state = links.DOWN
        self.assertEqual([route.rail for route in seen.routes("b")], [1])
        seen.forget("b")
        self.assertEqual([route.rail for route in seen.routes("b")], [0, 1])

    def test_a_node_that_crossed_cables_made_down_is_still_named(self):
        seen = self.survey()
        seen.set_card("b", card("b", "10.0.0", "10.0.1"))
        seen.forget("b")
        self.assertEqual(seen.findings(), [])
        seen.on_hello(wire.Message(wire.HELLO, 0, "b", "", 0), 1, ("10.0.0.2", 7947), time.monotonic())
        self.assertEqual([(entry["node"], entry["kind"]) for entry in seen.findings()], [("b", "cable")])


class Written(unittest.TestCase):
    """docs/agent.md and the manual say what the code does."""

    def setUp(self):
        top = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
        with open(os.path.join(top, "prov", "cluster", "docs", "agent.md"), encoding="utf-8") as file:
            self.document = file.read()
        with open(os.path.join(top, "man", "clusterd.8"), encoding="utf-8") as file:
            self.manual = file.read()

    def row(self, name):
        cells = re.search(rf"^\| {name} \|(.*)\|$", self.document, re.MULTILINE).group(1).split("|")
        return [int(cell.strip().replace(",", "")) for cell in cells]

    def test_bytes_a_second(self):
        nodes = self.row("nodes")
        self.assertEqual(nodes, [10, 100, 1000])
        self.assertEqual(self.row("membership, nothing happens"), [round(traffic.at_rest(count)) for count in nodes])
        self.assertEqual(self.row("membership while many nodes change"), [round(traffic.in_trouble(count)) for count in nodes])
        self.assertEqual(self.row("links"), [round(links.bytes_per_second(1500))] * 3)
        self.assertEqual(self.row("cards"), [round(survey.card_bytes_per_second(count)) for count in nodes])
        for name in ("membership, nothing happens", "links", "cards", "membership while many nodes change"):
            self.assertIn("\t".join(f"{number:,}" for number in self.row(name)), self.manual)

    def test_kinds_and_versions(self):
        numbers = {name.replace(" ", "_").upper(): int(number)
                   for name, number in re.findall(r"^\| ([a-z ]+) \| (\d+) \|", self.document.partition("## Questions")[0], re.MULTILINE)}
        self.assertEqual(len(numbers), 10)
        self.assertEqual({name: getattr(wire, name) for name in numbers}, numbers)
        self.assertEqual(re.findall(r"[Vv]ersion \*\*(\d+)\*\*", self.document), [str(wire.VERSION), str(query.VERSION[3])])

    def test_an_echo_is_as_long_as_the_bound_says(self):
        name = "n" * 12
        for kind in (wire.ECHO, wire.ECHO_REPLY):
            sent = wire.encode(wire.Message(kind, 1, name, "", 1), wire.tag("c"), b"k" * 16)
            self.assertLessEqual(len(sent) + wire.OVERHEAD_BYTES, links.ECHO_BYTES)


class Rails(unittest.TestCase):
    def test_named_interfaces_come_in_their_order_and_no_others(self):
        def named(*wanted):
            addresses = {name: [types.SimpleNamespace(family=socket.AF_INET, address="10.0.0.1", netmask="255.255.255.0")]
                         for name in ("eth10", "eth2", "eth0")}
            stats = {name: types.SimpleNamespace(mtu=1500, speed=0, duplex=0, isup=True) for name in addresses}
            with mock.patch.object(rails.psutil, "net_if_addrs", lambda: addresses), \
                    mock.patch.object(rails.psutil, "net_if_stats", lambda: stats):
                return [rail["device"] for rail in rails.read(list(wanted))]

        self.assertEqual(named(), ["eth0", "eth2", "eth10"])
        self.assertEqual(named("eth2", "eth0", "eth7"), ["eth2", "eth0"])


class Clock(unittest.TestCase):
    def test_jumps_and_suspension(self):
        watch = clock.ClockWatch(1000.0, 10.0, 10.0)
        self.assertEqual(watch.look(1002.0004, 12.0, 12.0), "")
        self.assertIn("jumped by -60.0 s", watch.look(944.0, 14.0, 14.0))
        self.assertIn("suspended for 100.0 s", watch.look(1046.0, 16.0, 116.0))


class Key(unittest.TestCase):
    def test_only_a_private_file_is_a_key(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "key")
            with open(path, "w", encoding="ascii") as file:
                file.write("k" * 32 + "\n")
            os.chmod(path, 0o600)
            self.assertEqual(key.read(path), b"k" * 32)
            os.chmod(path, 0o640)
            self.assertRaisesRegex(AgentError, "chmod 600", key.read, path)
            os.symlink(path, path + "2")
            self.assertRaises(AgentError, key.read, path + "2")
            with open(path, "w", encoding="ascii") as file:
                file.write("short")
            os.chmod(path, 0o600)
            self.assertRaisesRegex(AgentError, "at least 16", key.read, path)


def status(nodes):
    def link(a, b, state="up"):
        return {"from": a, "peer": b, "rail": 0, "state": state, "loss": 0.0, "rtt_us": 51.2, "path_mtu": 1500, "mtu": 1500}

    names = [f"node{number}" for number in range(1, nodes + 1)]
    rails = card("x", "10.0.0")["rails"]
    entries = [{"name": name, "state": "up", "order": "", "order_reason": "", "reason": "", "since": 0, "rails": rails, "cpu": 1.0,
                "memory": 2.0, "endpoints": 0} for name in names]
    entries[-1]["state"] = "down"
    entries[0]["name"] = names[0] = "<b>&'"
    return {"nodes": entries, "links": [link(a, b, "down" if b == names[1] else "up") for a in names for b in names if a != b],
            "findings": [], "endpoints": [], "history": []}


class Shown(unittest.TestCase):
    def test_matrix_and_states_are_words_and_colours(self):
        plain = text.Text(False).everything(status(3))
        self.assertIn("51us", plain)
        self.assertIn("down", plain)
        self.assertNotIn("\x1b", plain)
        self.assertIn("\x1b[31mdown", text.Text(True).everything(status(3)))

    def test_rates_of_nodes_and_links_are_shown_where_they_are_known(self):
        shown = status(3)
        shown["nodes"][1]["rates"] = {"eth0": [1500, 2_000_000], "eth1": [500, 1_000_000]}
        shown["links"][1]["rate_bits_per_second"] = 9_410_000_000
        plain = text.Text(False).everything(shown)
        self.assertRegex(plain, r"node2 .* 2.0 kB/s +3.0 MB/s ")
        self.assertIn("51us 9.4G", plain)

    def test_relays_have_totals(self):
        shown = status(3)
        self.assertNotIn("RELAYS", text.Text(False).everything(shown))
        shown["relays"] = [{"node": "node2", "members": 3, "frames": 170, "bytes": 190_000, "refused": 2, "dropped": 1,
                            "addresses": ["10.0.0.2:9227", "10.0.1.2:9227"]}]
        self.assertRegex(text.Text(False).everything(shown), r"node2 +3 +170 +190000 +2 +1 +10.0.0.2:9227 10.0.1.2:9227")

    def test_endpoints_have_job_paths_rates_and_what_is_stuck(self):
        row = {"node": "node1", "pid": 7, "command": "mpi_app", "job": "42", "endpoint": {"endpoint": "10.0.0.1:50000"},
               "rates": {"bytes_sent_per_second": 1.25e6, "bytes_received_per_second": 10.0},
               "peers": [{"path": "shm", "node": "node1"}, {"path": "packet", "node": "node2", "retransmitted_frames": 3},
                         {"path": "packet", "node": "node3", "rails": [{"relay": "10.0.0.9:9227"}, {"rtt_ns": 5}]}],
               "stuck": ["10.0.0.2:1 (node2) silent for 3 s, owes 4 frames"],
               "operations": [{"operation": "receive", "peer": "any", "bytes": 8, "age_ns": 12 * 10**9},
                              {"operation": "send", "peer": "10.0.0.2:1", "bytes": 8, "age_ns": 10**9}]}
        stopped = {"node": "node2", "pid": 8, "command": "mpi_app", "job": "", "endpoint": {"endpoint": "10.0.0.2:1"},
                   "trouble": "it does not answer: the process is stopped"}
        first, second, third = text.Text(False).endpoints({"endpoints": [row, stopped]}).splitlines()[1:]
        self.assertEqual(first.split(), "node1 42 7 mpi_app 10.0.0.1:50000 1 packet (node2), 1 packet by relay 10.0.0.9:9227 (node3), 1 shm "
                         "1.2 MB/s 10 B/s 3 10.0.0.2:1 (node2) silent for 3 s, owes 4 frames".split())
        self.assertEqual(second.split(), "receive of 8 bytes, any: waits for 12 s".split())
        self.assertEqual(third.split(), "node2 - 8 mpi_app 10.0.0.2:1 - - - 0 it does not answer: the process is stopped".split())

    def test_the_picture_is_well_formed_whatever_nodes_are_called(self):
        for nodes in (3, 1000):
            picture = topology.draw(status(nodes))
            xml.etree.ElementTree.fromstring(picture)
            self.assertNotIn("<b>", picture)

    def test_quality(self):
        link = status(3)["links"][0]
        self.assertEqual(matrix.quality({**link, "state": "up", "loss": 0.5}), "lossy")
        self.assertEqual(matrix.quality({**link, "state": "up", "path_mtu": 1400}), "lossy")
        links = status(3)["links"]
        self.assertEqual(matrix.of_node(links, "node2", 0), "lossy", "one way only")
        for link in links:
            link["state"] = "down" if "node2" in (link["from"], link["peer"]) else "up"
        self.assertEqual([matrix.of_node(links, name, 0) for name in ("node2", "node3")], ["down", "good"], "only one cable is cut")


if __name__ == "__main__":
    unittest.main()
