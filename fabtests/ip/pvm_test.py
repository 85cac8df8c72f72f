#!/usr/bin/env python3
"""PVM over cluster-ip: its daemons, its examples, a matrix product and a ping-pong by size, beside the plain network.

    pvm_test.py --program cluster-ip --provider DIRECTORY --programs DIRECTORY

The programs are pvm_pingpong and pvm_matrix of this directory. Each network has a virtual machine of its own, whose hosts
are called after it: plain1..., over1...
"""
import argparse
import os
import re
import shlex
import subprocess
import tempfile
import time
import unittest

import overlay
from overlay import Options, Overlay, ipv4, virtual_nodes

NODES = 4
UP_SECONDS = 30
ORDER, TASKS = 300, 8


class Machine:
    """A PVM over the hosts of one network, started from node 1."""

    def __init__(self, test, cluster, network, directory):
        self._test, self._cluster = test, cluster
        self.hosts = [f"{network}{node}" for node in range(1, NODES + 1)]
        # The daemons' files; the temporary directory of each node is its own.
        self._settings = [f"PVM_RSH={os.path.join(directory, 'rsh')}", "PVM_ROOT=/usr/lib/pvm3", "PVM_ALLOW_ROOT=1",
                          f"PVM_TMP={cluster.run(1, 'printenv', 'TMPDIR').strip()}"]
        hostfile = os.path.join(directory, network)
        with open(hostfile, "w", encoding="ascii") as file:
            file.write(f"* dx=/usr/bin/pvmd ep={Options.programs}:/usr/bin\n" + "\n".join(self.hosts) + "\n")
        self._daemon = overlay.start(test, self._command("pvmd", f"-n{self.hosts[0]}", hostfile), stdout=subprocess.PIPE, text=True)
        # It prints the place of its socket; a console that comes earlier would start a daemon of its own.
        test.assertIn("pvmtmp", self._daemon.stdout.readline())
        self._await_hosts()

    def _command(self, *words):
        return self._cluster.command(1, "env", *self._settings, *words)

    def run(self, *words):
        return self._cluster.run(1, "env", *self._settings, *words)

    def console(self, *lines):
        return self._cluster.run(1, "env", *self._settings, "pvm", input="\n".join(lines) + "\n")

    def _await_hosts(self):
        end = time.monotonic() + UP_SECONDS
        while True:
            known = self.console("conf", "quit")
            if all(re.search(rf"\b{host}\b", known) for host in self.hosts):
                return
            self._test.assertLess(time.monotonic(), end, known)
            time.sleep(0.2)

    def ring(self):
        """The example spmd, one task on each host: a token goes round."""
        # It buffers what it prints, and would show it when it ends.
        command = self._command("timeout", str(UP_SECONDS), "stdbuf", "-oL", "pvm")
        console = overlay.start(self._test, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        console.stdin.write(f"spawn -{NODES} -> spmd\n")
        console.stdin.flush()
        said = []
        for line in console.stdout:
            said.append(line)
            if "token ring done" in line:
                break
        console.stdin.close()
        return "".join(said)

    def halt(self):
        """Ends the daemons of all hosts."""
        subprocess.run(self._command("pvm"), input="halt\n", text=True, capture_output=True, check=False, timeout=UP_SECONDS)
        self._daemon.wait(UP_SECONDS)


class Pvm(unittest.TestCase):
    def setUp(self):
        self.cluster = virtual_nodes.make(NODES, suffix="-ip-pvm")
        self.addCleanup(self.cluster.down)
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self._name_hosts()
        self._write_rsh()

    def _name_hosts(self):
        file_name = os.path.join(self.directory, "hosts")
        with open(file_name, "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n")
            for node in range(1, NODES + 1):
                file.write(f"{self.cluster.address(node)} node{node} plain{node}\n{ipv4(node)} over{node}\n")
        for node in range(1, NODES + 1):
            self.cluster.run(node, "mount", "--bind", file_name, "/etc/hosts")

    def _write_rsh(self):
        """PVM calls `rsh HOST -n COMMAND`; the number at the end of HOST is that of the node."""
        lines = ["#!/bin/sh", "host=$1; shift; [ \"$1\" = -n ] && shift", "case $host in"]
        lines += [f"*{node}) exec {shlex.join(self.cluster.command(node, 'sh', '-c'))} \"$*\" ;;" for node in range(1, NODES + 1)]
        with open(os.path.join(self.directory, "rsh"), "w", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o755)) as file:
            file.write("\n".join(lines) + "\nesac\n")

    def _examples(self, machine):
        greeted = {machine.run("hello.pvm").split()[-1] for _ in range(NODES)}
        self.assertGreater(len(greeted & {f"node{node}" for node in range(2, NODES + 1)}), 1, greeted)
        self.assertIn("token ring done", machine.ring())
        sums = re.findall(r"I got ([\d.]+) from (\d+); \(expecting ([\d.]+)\)", machine.run("master1"))
        self.assertEqual({int(who) for _, who, _ in sums}, set(range(3 * NODES)))
        for got, who, expected in sums:
            self.assertEqual(got, expected, f"from {who}")

    def _measure(self, machine):
        matrix = machine.run(os.path.join(Options.programs, "pvm_matrix"), str(ORDER), str(TASKS))
        self.assertIn(f"on {NODES} hosts: right", matrix)
        found = {"matrix": float(matrix.split()[0])}
        for line in machine.run(os.path.join(Options.programs, "pvm_pingpong"), machine.hosts[1]).splitlines():
            route, size, microseconds, right = line.split()
            self.assertEqual(right, "right", line)
            found[route, int(size)] = float(microseconds)
        return found

    def test_beside_the_plain_network(self):
        found = {}
        for network in ("plain", "over"):
            over = Overlay(self, self.cluster, NODES) if network == "over" else None
            machine = Machine(self, self.cluster, network, self.directory)
            try:
                self._examples(machine)
                found[network] = self._measure(machine)
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
