#!/usr/bin/env python3
"""Two networks joined by a node that forwards: peers behind it are reached by each link, peers beside by Ethernet, and
cluster-info says which path each got."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
from endpoint_program import ScriptedEndpoint, attempts, connect, query, transfer, virtual_nodes  # noqa: E402

SIZES = (8, 100_000)
HEADERS = 28  # of IPv4 and UDP
NEAR, BESIDE, BRIDGE, FAR = 1, 2, 3, 4  # NEAR and BESIDE in one network, FAR in the other, BRIDGE in both
NARROW = 1300
LOCAL = {NEAR: 0, BESIDE: 0, FAR: 1}  # the rail that is the node's only network


# Prints the times to live of the UDP packets that come from an address, when its input ends.
TIMES_TO_LIVE = """
import json, select, socket, sys
receiver = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
receiver.bind((sys.argv[1], 0))
print("ready", flush=True)
seen = set()
while True:
    ready = select.select([receiver, sys.stdin], [], [])[0]
    if receiver in ready:
        packet = receiver.recv(65536)
        if packet[9] == 17 and packet[12:16] == socket.inet_aton(sys.argv[2]):
            seen.add(packet[8])
    elif ready:
        break
print(json.dumps(sorted(seen)))
"""


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(4, "--rails", "2", suffix="-routes")
        for node, rail in LOCAL.items():
            cls.ip(node, "link", "set", f"eth{1 - rail}", "down")
            other_network = cls.cluster.address(node, 1 - rail).rsplit(".", 1)[0] + ".0/24"
            cls.ip(node, "route", "replace", other_network, "via", cls.cluster.address(BRIDGE, rail))
        cls.cluster.run(BRIDGE, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    @classmethod
    def ip(cls, node, *words):
        cls.cluster.run(node, "ip", *words)

    def start_endpoint(self, node, link):
        made = ScriptedEndpoint(self.cluster.command(node), FI_CLUSTER_LINK=link, FI_LOG_LEVEL="warn")
        self.addCleanup(made.close)
        made.node = node
        name = bytes.fromhex(made.do("name"))
        made.address = f"{'.'.join(map(str, name[4:8]))}:{int.from_bytes(name[2:4], 'big')}"
        return made

    def peer(self, scripted, other):
        """What cluster-info reports about `other` at the endpoint."""
        for process in query("--all", before=self.cluster.command(scripted.node))["processes"]:
            for endpoint in process["endpoints"]:
                if endpoint["endpoint"]["endpoint"] == scripted.address:
                    return next(peer for peer in endpoint["peers"] if peer["peer"] == other.address)
        self.fail(f"no endpoint {scripted.address}")

    def exchange(self, one, other):
        for size in SIZES:
            transfer(one, other, 3, size)
            transfer(other, one, 3, size)

    def forwarded(self):
        """Packets that the bridge has passed on."""
        said = self.cluster.run(BRIDGE, "cat", "/proc/net/snmp")
        names, values = (line.split() for line in said.splitlines() if line.startswith("Ip:"))
        return int(values[names.index("ForwDatagrams")])

    def pair(self, one_node, other_node, link, other_link=None):
        one, other = self.start_endpoint(one_node, link), self.start_endpoint(other_node, other_link or link)
        connect(one, other)
        return one, other

    def test_a_peer_behind_the_bridge(self):
        for links in (("udp", "udp"), ("packet", "packet"), ("packet", "udp")):
            with self.subTest(links=links):
                before = self.forwarded()
                one, other = self.pair(NEAR, FAR, *links)
                self.exchange(one, other)
                self.assertGreater(self.forwarded(), before)
                peer = self.peer(one, other)
                self.assertEqual((peer["path"], peer["frame_max_bytes"]), (links[0], 1500 - HEADERS))
                way = peer["rails"][0]
                self.assertEqual((way["interface"], way["to"], way["ethertype"]), ("eth0", other.address, False))

    def test_peers_behind_and_beside_at_a_time(self):
        """Beside: raw frames that pass no router. The bridge: reached in its nearer network."""
        one, beside, far = (self.start_endpoint(node, "packet") for node in (NEAR, BESIDE, FAR))
        for other in (far, beside):  # the last is the one to talk to
            connect(one, other)
        before = self.forwarded()
        for _ in attempts():
            self.exchange(one, beside)
            if self.peer(one, beside)["rails"][0]["ethertype"]:
                break
        self.assertTrue(self.peer(one, beside)["rails"][0]["ethertype"])
        self.assertEqual(self.forwarded(), before, "beside is not behind")
        connect(one, far)
        self.exchange(one, far)
        self.assertGreater(self.forwarded(), before)
        self.assertFalse(self.peer(one, far)["rails"][0]["ethertype"])

    def test_a_network_that_narrows_behind_the_bridge(self):
        """No host has that MTU. Whether it narrows before the session or while it lasts: long frames only vanish."""
        for link in ("udp", "packet"):
            with self.subTest(link=link):
                self.addCleanup(self.ip, BRIDGE, "link", "set", "eth1", "mtu", "1500")
                one, other = self.pair(NEAR, FAR, link)
                self.exchange(one, other)
                self.assertEqual(self.peer(one, other)["frame_max_bytes"], 1500 - HEADERS)
                self.ip(BRIDGE, "link", "set", "eth1", "mtu", str(NARROW))
                self.exchange(one, other)
                self.assertLessEqual(self.peer(one, other)["frame_max_bytes"], NARROW - HEADERS)
                born_later, other = self.pair(NEAR, FAR, link)
                self.exchange(born_later, other)
                self.assertLessEqual(self.peer(born_later, other)["frame_max_bytes"], NARROW - HEADERS)
                self.ip(BRIDGE, "link", "set", "eth1", "mtu", "1500")

    def test_frames_live_long_enough(self):
        for link in ("udp", "packet"):
            with self.subTest(link=link):
                source = self.cluster.address(NEAR)
                watching = virtual_nodes.start(self.cluster.command(FAR, sys.executable, "-c", TIMES_TO_LIVE, "eth1", source),
                                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                self.assertEqual(watching.stdout.readline(), "ready\n")
                self.exchange(*self.pair(NEAR, FAR, link))
                seen = json.loads(watching.communicate("\n", timeout=60)[0])
                self.assertGreaterEqual(min(seen), 63, "what is left after one router")


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
