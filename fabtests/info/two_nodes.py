"""Two virtual nodes with two rails, endpoints on them, and what those say of themselves."""
import subprocess
import sys
import unittest

import program
from program import ScriptedEndpoint, introduce, talk

import nodes

MEGABYTE = 1 << 20
POLLS_MAX = 200  # times, until what must come is said


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

    def start_endpoint(self, node, rails="none", link="auto", **settings):
        made = ScriptedEndpoint(self.place(node), FI_CLUSTER_LINK=link, FI_CLUSTER_RAILS=rails, FI_LOG_LEVEL="info", **settings)
        self.addCleanup(made.close)
        made.node = node
        made.port = int.from_bytes(bytes.fromhex(made.do("name"))[2:4], "big")
        return made

    def seen(self, scripted):
        """What is said of the scripted's endpoint."""
        processes = program.ask("--all", before=self.place(scripted.node))["processes"]
        found = [endpoint for process in processes for endpoint in process["endpoints"]
                 if endpoint["endpoint"]["endpoint"].endswith(f":{scripted.port}")]
        self.assertEqual(len(found), 1)
        return found[0]

    def way(self, scripted):
        """The link, and why it is no better one."""
        endpoint = self.seen(scripted)["endpoint"]
        return endpoint["link"], endpoint.get("why_link", "")

    def talk_both_ways(self, one, other):
        introduce(one, other)
        for sender, receiver in ((one, other), (other, one)):
            talk(sender, receiver, 50)
            talk(sender, receiver, 8, MEGABYTE)

