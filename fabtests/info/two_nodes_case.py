"""A test case with two virtual nodes, two rails between them, and endpoints on them."""
import unittest

from endpoint_program import ScriptedEndpoint, connect, query, transfer, virtual_nodes

MEGABYTE = 1 << 20


class TwoNodesCase(unittest.TestCase):
    MTU = 1500

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, "--rails", "2", "--mtu", str(cls.MTU), suffix=f"-{cls.MTU}")
        cls.addClassCleanup(cls.cluster.down)

    def start_endpoint(self, node, rails="none", link="auto", **settings):
        made = ScriptedEndpoint(self.cluster.command(node), FI_CLUSTER_LINK=link, FI_CLUSTER_RAILS=rails, FI_LOG_LEVEL="info",
                                **settings)
        self.addCleanup(made.close)
        made.node = node
        made.port = int.from_bytes(bytes.fromhex(made.do("name"))[2:4], "big")
        return made

    def report(self, scripted):
        """What cluster-info reports about the endpoint."""
        processes = query("--all", before=self.cluster.command(scripted.node))["processes"]
        found = [endpoint for process in processes for endpoint in process["endpoints"]
                 if endpoint["endpoint"]["endpoint"].endswith(f":{scripted.port}")]
        self.assertEqual(len(found), 1)
        return found[0]

    def link(self, scripted):
        """The link, and why it is no better one."""
        endpoint = self.report(scripted)["endpoint"]
        return endpoint["link"], endpoint.get("why_link", "")

    def exchange(self, one, other):
        """Small and large messages in both directions."""
        connect(one, other)
        for sender, receiver in ((one, other), (other, one)):
            transfer(sender, receiver, 50)
            transfer(sender, receiver, 8, MEGABYTE)
