#!/usr/bin/env python3
"""What PVM reaches over the plain network and over cluster-ip, for programs: a line of JSON for each figure.

    pvm_table.py --program cluster-ip --provider DIRECTORY --programs DIRECTORY [--nodes 4,6,8,9] [--order 400]
                 [--nanoseconds 0] [--repetitions 3] [--networks plain,over]

First a ping-pong between two hosts by size, over the direct route (TCP) and that through the daemons (UDP). Then a matrix product
on so many nodes, with a task on each. The networks take turns in both; a figure is the median of the repetitions.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import unittest

import overlay
import pvm_machine
from overlay import Options, Overlay, virtual_nodes

NETWORKS = ("plain", "over")


def on_machine(test, cluster, network, nodes, directory, work):
    machine = pvm_machine.Machine(test, cluster, network, nodes, directory)
    try:
        return work(machine)
    finally:
        machine.halt()


def tell(found, **of):
    """The median of what each repetition found."""
    print(json.dumps({**of, "value": statistics.median(found)}), flush=True)


def in_turns(networks, repetitions, work):
    """Network -> what `work` finds in each repetition."""
    found = {network: [] for network in networks}
    for network in networks * repetitions:
        found[network].append(work(network))
    return found


def measure(test, cluster, directory, options):
    def turns(nodes, work):
        return in_turns(options.networks, options.repetitions, lambda network: on_machine(test, cluster, network, nodes, directory, work)).items()

    for network, found in turns(2, pvm_machine.pingpong):
        for route, size in found[0]:
            tell([each[route, size] for each in found], what="pingpong", network=network, route=route, bytes=size)
    for nodes in options.nodes:
        for network, found in turns(nodes, lambda machine: pvm_machine.matrix(machine, options.order, len(machine.hosts), options.nanoseconds)):
            tell(found, what="matrix", network=network, nodes=nodes, order=options.order)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "provider", "programs"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    parser.add_argument("--nodes", type=lambda text: [int(word) for word in text.split(",") if word], default=[4, 6, 8, 9],
                        help="of the matrix product (default: 4,6,8,9)")
    parser.add_argument("--order", type=int, default=400, help="(default: %(default)s)")
    parser.add_argument("--nanoseconds", type=int, default=0, help="of sleep in place of computing, for each element (default: none)")
    parser.add_argument("--repetitions", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(NETWORKS), help="(default: plain,over)")
    options = parser.parse_args(namespace=Options)
    overlay.require("pvmd")
    if not os.path.exists(os.path.join(Options.programs, "pvm_pingpong")):
        virtual_nodes.skip("pvm-dev was not installed when this was built")
    test = unittest.TestCase()
    most = max([2, *options.nodes])
    cluster = virtual_nodes.make(most, suffix="-pvm-table")
    try:
        with tempfile.TemporaryDirectory() as directory:
            pvm_machine.make_hosts(cluster, most, directory)
            Overlay(test, cluster, most)
            measure(test, cluster, directory, options)
    finally:
        test.doCleanups()
        cluster.down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
