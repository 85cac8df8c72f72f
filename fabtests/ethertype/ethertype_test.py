#!/usr/bin/env python3
"""Small frames use the provider's EtherType, past the other node's IP stack, where the network forwards it, and the IP path
where it does not or no longer does. The path in use is compared, and that every message arrives; times are not."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
from endpoint_program import attempts, connect, transfer  # noqa: E402
from two_nodes_case import TwoNodesCase  # noqa: E402


class EthertypePath(TwoNodesCase):
    def drop_ethertype(self, *where):
        """The switch drops frames under the EtherType until the test is over or forward_all() is called."""
        self.cluster.faults("--loss", "100%", "--only", "ethertype", *where)
        self.addCleanup(self.forward_all)

    def forward_all(self):
        self.cluster.faults("--clear")

    def state(self, scripted):
        """Whether the endpoint uses the EtherType path now, and how many frames it has sent there."""
        report = self.report(scripted)
        return report["peers"][0]["rails"][0]["ethertype"], report["counters"]["link_ethertype_sent"]

    def await_state(self, one, other, used):
        """Messages in both directions until both endpoints report this."""
        for _ in attempts():
            for sender, receiver in ((one, other), (other, one)):
                transfer(sender, receiver, 50)
            if (self.state(one)[0], self.state(other)[0]) == (used, used):
                return
        self.fail(f"still {self.state(one)}, {self.state(other)}")

    def pair(self, *settings):
        one, other = (self.start_endpoint(node, **(settings[node - 1] if settings else {})) for node in (1, 2))
        connect(one, other)
        return one, other

    def test_used_by_default(self):
        one, other = self.pair()
        self.await_state(one, other, True)
        before = self.state(one)[1]
        transfer(one, other, 100)
        self.assertGreater(self.state(one)[1], before)
        self.exchange(one, other)

    def test_not_used_when_one_side_lacks_it(self):
        for settings in ({"FI_CLUSTER_ETHERTYPE": "no"}, {"link": "udp"}):
            with self.subTest(settings=settings):
                one, other = self.pair({}, settings)
                for _ in range(3):
                    self.exchange(one, other)
                self.assertEqual((self.state(one), self.state(other)), ((False, 0), (False, 0)))

    def test_a_network_that_drops_it(self):
        self.drop_ethertype("--nodes", "2", "--direction", "to")
        one, other = self.pair()
        for _ in range(3):
            self.exchange(one, other)
        self.assertEqual((self.state(one)[0], self.state(other)[0]), (False, False))
        self.assertGreater(self.state(one)[1], 0, "it has probed")
        self.forward_all()
        self.await_state(one, other, True)

    def test_a_network_that_begins_to_drop_it(self):
        one, other = self.pair()
        self.await_state(one, other, True)
        self.drop_ethertype()
        self.await_state(one, other, False)
        for _ in range(3):
            self.exchange(one, other)
        self.forward_all()
        self.await_state(one, other, True)


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
