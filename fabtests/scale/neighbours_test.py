#!/usr/bin/env python3
"""Two virtual nodes whose kernels refuse to send to peers: neighbours_test.py --build BUILD --endpoint-program scripted_ep

A kernel whose neighbour table is full refuses with ENOBUFS to send to a host that is not in the table. All namespaces share the
table, so this test fills a queue instead: its queue has no space, and the error is the same. Frames that bypass the queue leave."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
from endpoint_program import connect, transfer  # noqa: E402
from two_nodes_case import TwoNodesCase  # noqa: E402

SECONDS_MAX = 10  # less than FI_CLUSTER_PEER_TIMEOUT


class Neighbours(TwoNodesCase):
    def refuse(self, node):
        self.cluster.run(node, "tc", "qdisc", "replace", "dev", "eth0", "root", "bfifo", "limit", "1")
        self.addCleanup(self.cluster.run, node, "tc", "qdisc", "del", "dev", "eth0", "root")

    def test_first_contact_needs_no_table(self):
        one, other = self.start_endpoint(1, link="packet"), self.start_endpoint(2, link="packet")
        self.cluster.run(1, "ping", "-c", "1", "node2")  # both know the other now; a queued ARP request would hide the error
        for node in (1, 2):
            self.refuse(node)
        began = time.monotonic()
        connect(one, other)
        transfer(one, other, 4)
        transfer(other, one, 4)
        self.assertLess(time.monotonic() - began, SECONDS_MAX)


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
