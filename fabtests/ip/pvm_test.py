#!/usr/bin/env python3
"""PVM over cluster-ip: its daemons, its examples, a matrix product and a ping-pong by size, beside the plain network.

    pvm_test.py --program cluster-ip --provider DIRECTORY --programs DIRECTORY

The programs are pvm_pingpong and pvm_matrix of this directory. Each network has a virtual machine of its own.
"""
import argparse
import os
import re
import tempfile
import unittest

import overlay
import pvm_machine
from overlay import Options, Overlay, virtual_nodes

NODES = 4
ORDER, TASKS = 300, 8


class Pvm(unittest.TestCase):
    def setUp(self):
        self.cluster = virtual_nodes.make(NODES, suffix="-ip-pvm")
        self.addCleanup(self.cluster.down)
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        pvm_machine.make_hosts(self.cluster, NODES, self.directory)

    def _examples(self, machine):
        greeted = {machine.run("hello.pvm").split()[-1] for _ in range(NODES)}
        self.assertGreater(len(greeted & {f"node{node}" for node in range(2, NODES + 1)}), 1, greeted)
        self.assertIn("token ring done", machine.ring())
        sums = re.findall(r"I got ([\d.]+) from (\d+); \(expecting ([\d.]+)\)", machine.run("master1"))
        self.assertEqual({int(who) for _, who, _ in sums}, set(range(3 * NODES)))
        for got, who, expected in sums:
            self.assertEqual(got, expected, f"from {who}")

    def test_beside_the_plain_network(self):
        found = {}
        for network in ("plain", "over"):
            over = Overlay(self, self.cluster, NODES) if network == "over" else None
            machine = pvm_machine.Machine(self, self.cluster, network, NODES, self.directory)
            try:
                self._examples(machine)
                found[network] = {"matrix": pvm_machine.matrix(machine, ORDER, TASKS), **pvm_machine.pingpong(machine)}
            finally:
                machine.halt()
        for node, daemon in over.daemons.items():
            counts = daemon.stop()
            self.assertGreater(min(counts["sent"], counts["received"]), 0, f"node{node}")
        self._print(found["plain"], found["over"])

    @staticmethod
    def _print(plain, over):
        print(f"\nmatrix product of order {ORDER}, {TASKS} tasks: {plain['matrix']:.3f} s plain, {over['matrix']:.3f} s over cluster-ip")
        print(f"{'one way, us':>12}{'UDP plain':>12}{'cluster-ip':>12}{'TCP plain':>12}{'cluster-ip':>12}")
        for size in sorted({key[1] for key in plain if key != "matrix"}):
            print(f"{size:12}" + "".join(f"{table[route, size]:12.1f}" for route in ("udp", "tcp") for table in (plain, over)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "provider", "programs"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    parser.parse_args(namespace=Options)
    overlay.require("pvmd", "hello.pvm")
    if not os.path.exists(os.path.join(Options.programs, "pvm_pingpong")):
        virtual_nodes.skip("pvm-dev was not installed when this was built")
    unittest.main(argv=["pvm_test.py"], verbosity=2)


if __name__ == "__main__":
    main()
