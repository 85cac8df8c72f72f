#!/usr/bin/env python3
"""Two virtual nodes whose interfaces have one receive ring each: all endpoints beyond it receive by their sockets, and every
message of every one of them arrives whole. Bytes and what is said are judged, times are not."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import program  # noqa: E402
from program import Talker, introduce, talk  # noqa: E402

import nodes  # noqa: E402

MEGABYTE = 1 << 20
RINGS = 1
HOUR = "3600000"  # in milliseconds
ASKED = 200  # times, until what must come is said


class Network(unittest.TestCase):
    MTU = 1500

    @classmethod
    def setUpClass(cls):
        cls.name = nodes.make(2, "--rails", "2", "--mtu", str(cls.MTU), suffix=f"-{cls.MTU}")
        cls.addClassCleanup(nodes.vcluster, "down", "--name", cls.name, capture_output=True)

    def place(self, node):
        return [sys.executable, nodes.VCLUSTER, "exec", "--name", self.name, f"node{node}"]

    def ip(self, node, *words):
        return subprocess.run([*self.place(node), "ip", *words], check=True, capture_output=True, text=True,
                              timeout=60).stdout

    def talker(self, node, rings=RINGS, rails="none", **settings):
        made = Talker(self.place(node), FI_CLUSTER_LINK="packet", FI_CLUSTER_RINGS=str(rings), FI_CLUSTER_RAILS=rails,
                      FI_LOG_LEVEL="info", **settings)
        self.addCleanup(made.close)
        made.node = node
        made.port = int.from_bytes(bytes.fromhex(made.do("name"))[2:4], "big")
        return made

    def seen(self, talker):
        """What is said of the talker's endpoint, and the number of its process."""
        processes = program.ask("--all", before=self.place(talker.node))["processes"]
        found = [(endpoint, process["pid"]) for process in processes for endpoint in process["endpoints"]
                 if endpoint["endpoint"]["endpoint"].endswith(f":{talker.port}")]
        self.assertEqual(len(found), 1)
        return found[0]

    def why_no_ring(self, talker):
        return self.seen(talker)[0]["endpoint"].get("why_no_ring", "")

    def talk_both_ways(self, one, other):
        introduce(one, other)
        for sender, receiver in ((one, other), (other, one)):
            talk(sender, receiver, 50)
            talk(sender, receiver, 8, MEGABYTE)


class OneRing(Network):
    def test_all_are_served(self):
        crowd = [self.talker(2) for _ in range(RINGS + 2)]
        self.assertEqual([self.why_no_ring(talker) != "" for talker in crowd], [False, True, True])
        for talker in crowd[RINGS:]:
            self.assertEqual(self.why_no_ring(talker), "all 1 FI_CLUSTER_RINGS of eth0 are taken")
            said = [line for line in talker.log().splitlines() if "come by its socket" in line]
            self.assertEqual(len(said), 1, said)
        for far in (self.talker(1), self.talker(1)):  # with a ring, and without
            for talker in crowd:
                self.talk_both_ways(far, talker)

    def test_text_is_readable(self):
        crowd = [self.talker(2) for _ in range(RINGS + 1)]
        text = "".join(program.run(words, before=self.place(2), FI_CLUSTER_RINGS=str(RINGS)).stdout
                       for words in ("--all", "--host"))
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])
        self.assertEqual(" ".join(text.split()).count("receives by the socket: all 1 FI_CLUSTER_RINGS"), len(crowd) - RINGS)
        self.assertIn("frames of at most 1472 bytes; all 1 FI_CLUSTER_RINGS of eth0 are taken", text)

    def test_the_ring_of_the_dead_is_the_next_one_s(self):
        first, second = self.talker(2), self.talker(2)
        self.assertEqual((self.why_no_ring(first), self.why_no_ring(second) != ""), ("", True))
        first.process.kill()
        first.process.wait(program.SECONDS_MAX)
        third = self.talker(2)
        self.assertEqual(self.why_no_ring(third), "")
        far = self.talker(1)
        for talker in (second, third):
            self.talk_both_ways(far, talker)

    def test_complaints_are_heard(self):
        """Who has no ring learns from the kernel that its peer is gone: silence would tell in an hour."""
        holder, one, other = self.talker(1), self.talker(1, FI_CLUSTER_PEER_TIMEOUT=HOUR), self.talker(2)
        self.assertEqual((self.why_no_ring(holder), self.why_no_ring(one) != ""), ("", True))
        introduce(one, other)
        talk(one, other, 1)
        other.process.kill()
        other.process.wait(program.SECONDS_MAX)
        one.begin("send 1 8")
        with self.assertRaisesRegex(RuntimeError, "ended with status"):
            one.end()

    def test_on_one_rail_only(self):
        """A ring on one rail, the socket on the other, and both carry."""
        holder = self.talker(2)
        self.assertEqual(self.why_no_ring(holder), "")
        one, other = self.talker(1, rails="auto"), self.talker(2, rails="auto")
        self.assertEqual(self.why_no_ring(one), "")
        self.assertEqual(self.why_no_ring(other), "all 1 FI_CLUSTER_RINGS of eth0 are taken")
        introduce(one, other)
        for _ in range(ASKED):
            self.talk_both_ways(one, other)
            rails = {rail["interface"]: rail["up"] for rail in self.seen(one)[0]["peers"][0]["rails"]}
            if rails == {"eth0": True, "eth1": True}:
                break
        self.assertEqual(rails, {"eth0": True, "eth1": True})
        self.talk_both_ways(one, other)

    def test_ipv6(self):
        for node in (1, 2):
            old = json.loads(self.ip(node, "-json", "-4", "addr", "show", "eth0"))[0]["addr_info"][0]
            self.ip(node, "-4", "addr", "flush", "dev", "eth0")
            self.addCleanup(self.ip, node, "addr", "add", f"{old['local']}/{old['prefixlen']}", "dev", "eth0")
            self.ip(node, "-6", "addr", "add", f"fd00:77::{node}/64", "dev", "eth0", "nodad")
            self.addCleanup(self.ip, node, "-6", "addr", "del", f"fd00:77::{node}/64", "dev", "eth0")
        crowd = [self.talker(2, FI_CLUSTER_IFACE="eth0") for _ in range(RINGS + 1)]
        self.assertEqual([self.why_no_ring(talker) != "" for talker in crowd], [False, True])
        far = self.talker(1, FI_CLUSTER_IFACE="eth0")
        for talker in crowd:
            self.assertTrue(self.seen(talker)[0]["endpoint"]["endpoint"].startswith("[fd00:77::2]:"))
            self.talk_both_ways(far, talker)


class Jumbo(Network):
    MTU = 9000

    def test_all_are_served(self):
        crowd = [self.talker(2) for _ in range(RINGS + 1)]
        self.assertEqual([self.why_no_ring(talker) != "" for talker in crowd], [False, True])
        far = self.talker(1)
        for talker in crowd:
            self.assertEqual(self.seen(talker)[0]["endpoint"]["frame_max_bytes"], self.MTU - 28)
            self.talk_both_ways(far, talker)


if __name__ == "__main__":
    program.prepare(__doc__)
    nodes.prepare()
    unittest.main(argv=sys.argv[:1], verbosity=2)
