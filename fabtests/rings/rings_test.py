#!/usr/bin/env python3
"""Two virtual nodes whose interfaces have one receive ring each: all endpoints beyond it use the udp link, and every message
of every one of them arrives whole. Bytes and what is said are judged, times are not."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import program  # noqa: E402
from program import introduce  # noqa: E402
from two_nodes import POLLS_MAX, Network  # noqa: E402

import nodes  # noqa: E402

RINGS = 1
RING = ("packet", "")
NO_RING = ("udp", "all 1 receive rings of eth0 are in use (FI_CLUSTER_LINK=packet has no such limit)")


class Rationed(Network):
    def start_endpoint(self, node, **settings):
        return super().start_endpoint(node, FI_CLUSTER_TEST=f"rings={RINGS}", **settings)


class OneRing(Rationed):
    def test_all_are_served(self):
        crowd = [self.start_endpoint(2) for _ in range(RINGS + 2)]
        self.assertEqual([self.way(scripted) for scripted in crowd], [RING, NO_RING, NO_RING])
        for scripted in crowd[RINGS:]:
            said = [line for line in scripted.log().splitlines() if f"uses the udp link: {NO_RING[1]}" in line]
            self.assertEqual(len(said), 1, said)
        for far in (self.start_endpoint(1), self.start_endpoint(1)):  # with a ring, and without
            for scripted in crowd:
                self.talk_both_ways(far, scripted)

    def test_who_asks_for_it_by_name_has_it(self):
        crowd = [self.start_endpoint(2, link="packet") for _ in range(RINGS + 1)]
        self.assertEqual([self.way(scripted) for scripted in crowd], [RING] * len(crowd))
        self.assertEqual(self.way(self.start_endpoint(2)), RING)

    def test_the_ring_of_the_dead_is_the_next_one_s(self):
        first, second = self.start_endpoint(2), self.start_endpoint(2)
        self.assertEqual((self.way(first), self.way(second)), (RING, NO_RING))
        first.process.kill()
        first.process.wait(program.SECONDS_MAX)
        third = self.start_endpoint(2)
        self.assertEqual(self.way(third), RING)
        far = self.start_endpoint(1)
        for scripted in (second, third):
            self.talk_both_ways(far, scripted)

    def test_on_one_rail_only(self):
        """The udp link on one rail, a ring on the other, and both carry."""
        holder = self.start_endpoint(2)
        self.assertEqual(self.way(holder), RING)
        one, other = self.start_endpoint(1, rails="auto"), self.start_endpoint(2, rails="auto")
        self.assertEqual((self.way(one), self.way(other)), (RING, NO_RING))
        introduce(one, other)
        for _ in range(POLLS_MAX):
            self.talk_both_ways(one, other)
            rails = {rail["interface"]: rail["up"] for rail in self.seen(one)["peers"][0]["rails"]}
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
        crowd = [self.start_endpoint(2, FI_CLUSTER_IFACE="eth0") for _ in range(RINGS + 1)]
        self.assertEqual([self.way(scripted) for scripted in crowd], [RING, NO_RING])
        far = self.start_endpoint(1, FI_CLUSTER_IFACE="eth0")
        for scripted in crowd:
            self.assertTrue(self.seen(scripted)["endpoint"]["endpoint"].startswith("[fd00:77::2]:"))
            self.talk_both_ways(far, scripted)


class Jumbo(Rationed):
    MTU = 9000

    def test_all_are_served(self):
        crowd = [self.start_endpoint(2) for _ in range(RINGS + 1)]
        self.assertEqual([self.way(scripted) for scripted in crowd], [RING, NO_RING])
        far = self.start_endpoint(1)
        for scripted in crowd:
            self.assertEqual(self.seen(scripted)["endpoint"]["frame_max_bytes"], self.MTU - 28)
            self.talk_both_ways(far, scripted)


if __name__ == "__main__":
    program.prepare(__doc__)
    nodes.prepare()
    unittest.main(argv=sys.argv[:1], verbosity=2)
