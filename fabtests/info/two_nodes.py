"""Two virtual nodes with two rails, endpoints on them, and what those say of themselves."""
import subprocess
import sys
import unittest

import program
from program import Talker, introduce, talk

import nodes

MEGABYTE = 1 << 20
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

    def talker(self, node, rails="none", link="auto", **settings):
        made = Talker(self.place(node), FI_CLUSTER_LINK=link, FI_CLUSTER_RAILS=rails, FI_LOG_LEVEL="info", **settings)
        self.addCleanup(made.close)
        made.node = node
        made.port = int.from_bytes(bytes.fromhex(made.do("name"))[2:4], "big")
        return made

    def seen(self, talker):
        """What is said of the talker's endpoint."""
        processes = program.ask("--all", before=self.place(talker.node))["processes"]
        found = [endpoint for process in processes for endpoint in process["endpoints"]
                 if endpoint["endpoint"]["endpoint"].endswith(f":{talker.port}")]
        self.assertEqual(len(found), 1)
        return found[0]

    def way(self, talker):
        """The link, and why it is no better one."""
        endpoint = self.seen(talker)["endpoint"]
        return endpoint["link"], endpoint.get("why_link", "")

    def talk_both_ways(self, one, other):
        introduce(one, other)
        for sender, receiver in ((one, other), (other, one)):
            talk(sender, receiver, 50)
            talk(sender, receiver, 8, MEGABYTE)

