#!/usr/bin/env python3
"""Two virtual nodes. All endpoints of a user on an interface have a receive ring, in one group. If the group has one place, all
endpoints beyond it use the udp link. Every message of each of them arrives intact. Bytes and reports are compared, times are not."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
from endpoint_program import attempts, connect, transfer  # noqa: E402
from two_nodes_case import MEGABYTE, TwoNodesCase  # noqa: E402

RINGS = 1
RING = ("packet", "")
NO_RING = ("udp", "eth0: all receive rings of this user are in use (with FI_CLUSTER_LINK=packet, the endpoint opens a "
                  "receive ring of its own)")
MANY = 16


class OneRingCase(TwoNodesCase):
    def start_endpoint(self, node, **settings):
        return super().start_endpoint(node, FI_CLUSTER_TEST_RINGS=f"{RINGS}", **settings)


class OneRing(OneRingCase):
    def test_all_endpoints_work(self):
        endpoints = [self.start_endpoint(2) for _ in range(RINGS + 2)]
        self.assertEqual([self.link(scripted) for scripted in endpoints], [RING, NO_RING, NO_RING])
        for scripted in endpoints[RINGS:]:
            logged = [line for line in scripted.log().splitlines() if f"has no receive ring and uses the udp link: {NO_RING[1]}" in line]
            self.assertEqual(len(logged), 1, logged)
        for remote in (self.start_endpoint(1), self.start_endpoint(1)):  # with a ring, and without
            for scripted in endpoints:
                self.exchange(remote, scripted)

    def test_a_link_that_is_set_explicitly_is_not_limited(self):
        endpoints = [self.start_endpoint(2, link="packet") for _ in range(RINGS + 1)]
        self.assertEqual([self.link(scripted) for scripted in endpoints], [RING] * len(endpoints))
        self.assertEqual(self.link(self.start_endpoint(2)), NO_RING)

    def test_the_ring_of_a_killed_process_is_free_again(self):
        first, second = self.start_endpoint(2), self.start_endpoint(2)
        self.assertEqual((self.link(first), self.link(second)), (RING, NO_RING))
        first.process.kill()
        first.process.wait(endpoint_program.SECONDS_MAX)
        third = self.start_endpoint(2)
        self.assertEqual(self.link(third), RING)
        remote = self.start_endpoint(1)
        for scripted in (second, third):
            self.exchange(remote, scripted)

    def test_on_one_rail_only(self):
        """The udp link on one rail, a ring on the other, and both carry."""
        holder = self.start_endpoint(2)
        self.assertEqual(self.link(holder), RING)
        one, other = self.start_endpoint(1, rails="auto"), self.start_endpoint(2, rails="auto")
        self.assertEqual((self.link(one), self.link(other)), (RING, NO_RING))
        connect(one, other)
        for _ in attempts():
            self.exchange(one, other)
            rails = {rail["interface"]: rail["up"] for rail in self.report(one)["peers"][0]["rails"]}
            if rails == {"eth0": True, "eth1": True}:
                break
        self.assertEqual(rails, {"eth0": True, "eth1": True})
        self.exchange(one, other)

    def test_ipv6(self):
        ip = self.cluster.run
        for node in (1, 2):
            old = json.loads(ip(node, "ip", "-json", "-4", "addr", "show", "eth0"))[0]["addr_info"][0]
            ip(node, "ip", "-4", "addr", "flush", "dev", "eth0")
            self.addCleanup(ip, node, "ip", "addr", "add", f"{old['local']}/{old['prefixlen']}", "dev", "eth0")
            ip(node, "ip", "-6", "addr", "add", f"fd00:77::{node}/64", "dev", "eth0", "nodad")
            self.addCleanup(ip, node, "ip", "-6", "addr", "del", f"fd00:77::{node}/64", "dev", "eth0")
        endpoints = [self.start_endpoint(2, FI_CLUSTER_IFACE="eth0") for _ in range(RINGS + 1)]
        self.assertEqual([self.link(scripted) for scripted in endpoints], [RING, NO_RING])
        remote = self.start_endpoint(1, FI_CLUSTER_IFACE="eth0")
        for scripted in endpoints:
            self.assertTrue(self.report(scripted)["endpoint"]["endpoint"].startswith("[fd00:77::2]:"))
            self.exchange(remote, scripted)


class Jumbo(OneRingCase):
    MTU = 9000

    def test_all_endpoints_work(self):
        endpoints = [self.start_endpoint(2) for _ in range(RINGS + 1)]
        self.assertEqual([self.link(scripted) for scripted in endpoints], [RING, NO_RING])
        remote = self.start_endpoint(1)
        for scripted in endpoints:
            self.assertEqual(self.report(scripted)["endpoint"]["frame_max_bytes"], self.MTU - 28)
            self.exchange(remote, scripted)


class ManyRings(TwoNodesCase):
    def endpoints(self, count):
        made = [self.start_endpoint(2) for _ in range(count)]
        self.assertEqual({self.link(scripted) for scripted in made}, {RING})
        return made

    def test_each_receives_its_own(self):
        endpoints = self.endpoints(MANY)
        remote = self.start_endpoint(1)
        for scripted in endpoints:
            self.exchange(remote, scripted)
        group = self.report(endpoints[-1])["endpoint"]
        self.assertEqual((group["rings_endpoints"], group["rings"]), (MANY, 2 * MANY))
        self.assertGreaterEqual(group["rings_bytes"], 2 * MANY * MEGABYTE)

    def test_members_are_killed_and_join(self):
        endpoints = self.endpoints(MANY // 2)
        remote = self.start_endpoint(1)
        for scripted in endpoints:
            self.exchange(remote, scripted)
        for _ in range(3):
            for scripted in endpoints[1:3]:
                scripted.process.kill()
            del endpoints[1:3]
            for scripted in endpoints:  # at once, while the kernel removes the dead
                self.small(remote, scripted)
            endpoints += self.endpoints(2)
            for scripted in endpoints:
                self.small(remote, scripted)

    @staticmethod
    def small(one, other):
        connect(one, other)
        transfer(one, other, 4)
        transfer(other, one, 4)


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
