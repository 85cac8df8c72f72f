"""A parallel virtual machine (PVM) over the hosts of one network of virtual nodes.

Each network has hosts of its own, which are called after it: plain1..., over1... (over cluster-ip).
"""
import os
import re
import shlex
import subprocess
import time

import overlay
from overlay import Options, ipv4

UP_SECONDS = 30


def make_hosts(cluster, nodes, directory):
    """Names the hosts of both networks in each node, and lets PVM reach them."""
    file_name = os.path.join(directory, "hosts")
    with open(file_name, "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost\n")
        for node in range(1, nodes + 1):
            file.write(f"{cluster.address(node)} node{node} plain{node}\n{ipv4(node)} over{node}\n")
    for node in range(1, nodes + 1):
        cluster.run(node, "mount", "--bind", file_name, "/etc/hosts")
    # PVM calls `rsh HOST -n COMMAND`; the number at the end of HOST is that of the node.
    lines = ["#!/bin/sh", "host=$1; shift; [ \"$1\" = -n ] && shift", "case $host in"]
    lines += [f"*{node}) exec {shlex.join(cluster.command(node, 'sh', '-c'))} \"$*\" ;;" for node in range(nodes, 0, -1)]
    with open(os.path.join(directory, "rsh"), "w", encoding="utf-8", opener=lambda name, how: os.open(name, how, 0o755)) as file:
        file.write("\n".join(lines) + "\nesac\n")


def pingpong(machine):
    """(route, bytes) -> microseconds one way, from the first host to the second; the bytes were compared."""
    found = {}
    for line in machine.run(os.path.join(Options.programs, "pvm_pingpong"), machine.hosts[1]).splitlines():
        route, size, microseconds, right = line.split()
        if right != "right":
            raise AssertionError(line)
        found[route, int(size)] = float(microseconds)
    return found


def matrix(machine, order, tasks, nanoseconds=0):
    """The seconds of a matrix product that is right, and that all hosts took part in."""
    said = machine.run(os.path.join(Options.programs, "pvm_matrix"), str(order), str(tasks), str(nanoseconds))
    if f"on {len(machine.hosts)} hosts: right" not in said:
        raise AssertionError(said)
    return float(said.split()[0])


class Machine:
    """A PVM over the hosts of one network, started from node 1."""

    def __init__(self, test, cluster, network, nodes, directory):
        self._test, self._cluster, self._nodes = test, cluster, nodes
        self.hosts = [f"{network}{node}" for node in range(1, nodes + 1)]
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
        console.stdin.write(f"spawn -{self._nodes} -> spmd\n")
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
