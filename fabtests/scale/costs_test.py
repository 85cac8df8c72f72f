#!/usr/bin/env python3
"""What endpoints and peers cost, between two virtual nodes: costs_test.py --build BUILD --program endpoint_costs

A process with many endpoints shows what one more endpoint costs before it has peers. A process with few endpoints that
exchange messages with all of these shows what an active peer costs."""
import argparse
import os
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

MORE = 32
ENDPOINT_DESCRIPTORS = 11
ENDPOINT_KILOBYTES = 96
PEER_KILOBYTES = 20
DESCRIPTORS_RESERVED = 4096  # os/descriptor.h


class Costs(unittest.TestCase):
    def start(self, node, count):
        environment = virtual_nodes.of_provider(os.path.join(os.path.abspath(options.build), "prov", "cluster"), FI_CLUSTER_LINK="packet")
        command = [*self.cluster.command(node), os.path.abspath(options.program), str(count)]
        process = virtual_nodes.start(command, environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        return process

    def numbers(self, process):
        return [int(word) for word in process.stdout.readline().split()]

    def test_endpoints_and_peers_are_cheap(self):
        self.cluster = virtual_nodes.shared(2)
        many, few = self.start(1, MORE), self.start(2, 0)
        descriptors, kilobytes, _ = self.numbers(many)
        *further, table = self.numbers(few)
        self.assertEqual(further, [0, 0])
        # Once the process has threads, the kernel waits before it makes the table of descriptors larger.
        self.assertGreaterEqual(table, min(DESCRIPTORS_RESERVED, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        print(f"a further endpoint: {descriptors / MORE:.1f} descriptors, {kilobytes / MORE:.1f} KB")
        self.assertLessEqual(descriptors, MORE * ENDPOINT_DESCRIPTORS)
        self.assertLessEqual(kilobytes, MORE * ENDPOINT_KILOBYTES)
        names = [process.stdout.readline() for process in (many, few)]
        for process, others in ((many, names[1]), (few, names[0])):
            process.stdin.write(others)
            process.stdin.flush()
        peers, descriptors, kilobytes = self.numbers(few)
        self.numbers(many)
        print(f"an active peer: {kilobytes / peers:.1f} KB")
        self.assertLessEqual(kilobytes, peers * PEER_KILOBYTES)
        self.assertEqual(descriptors, 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    options, rest = parser.parse_known_args()
    virtual_nodes.require()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
