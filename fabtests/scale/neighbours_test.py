#!/usr/bin/env python3
"""Two virtual nodes whose kernels refuse to send to peers: neighbours_test.py --build BUILD --endpoint-program scripted_ep

A kernel refuses with ENOBUFS to send to a host if its table of hardware addresses is full, or if the queue of the interface is
full. Here the queue is full. Frames of first contact wait then, and do not go to all hosts. Frames that bypass the queue leave."""
import os
import select
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
from endpoint_program import connect, transfer  # noqa: E402
from two_nodes_case import TwoNodesCase  # noqa: E402

REFUSED_SECONDS = 1
SECONDS_MAX = 10  # less than FI_CLUSTER_PEER_TIMEOUT


class Neighbours(TwoNodesCase):
    def test_first_contact_waits_for_space_in_the_queue(self):
        one, other = self.start_endpoint(1, link="packet"), self.start_endpoint(2, link="packet")
        self.cluster.run(1, "ping", "-c", "1", "node2")  # both know the other now; a queued ARP request would hide the error
        for node in (1, 2):
            self.cluster.run(node, "tc", "qdisc", "replace", "dev", "eth0", "root", "bfifo", "limit", "1")
        connect(one, other)
        other.begin("receive 4")
        one.begin("send 4 8")
        time.sleep(REFUSED_SECONDS)
        readable, _, _ = select.select([one.process.stdout, other.process.stdout], [], [], 0)
        self.assertEqual(readable, [], "a frame passed")
        began = time.monotonic()
        for node in (1, 2):
            self.cluster.run(node, "tc", "qdisc", "del", "dev", "eth0", "root")
        one.end()
        other.end()
        transfer(other, one, 4)
        self.assertLess(time.monotonic() - began, SECONDS_MAX)


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
