"""Prints what TCP/IP reaches over cluster-ip, beside the plain network and WireGuard.

    ip_table.py --program cluster-ip --provider DIRECTORY [--seconds 5] [--repetitions 3] [--wireguard PROGRAM] [--only ROW]...

Two nodes without a rate limit. Each row: a TCP stream by iperf3 in one and in four connections; its retransmitted segments;
round trips of `ping`, idle and beside the stream; the processor time of the whole machine for a gigabyte of one connection,
and the part of both daemons. Each figure is the median of the repetitions, which run in turns.

WireGuard encrypts, so the row to compare it with is that of cluster-ip with a key and FI_CLUSTER_SECURITY=encrypt. Where the
kernel has no WireGuard, wireguard-go takes its place: --wireguard names a newer one than Debian's, which lacks its offloads.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import overlay
import wireguard
from overlay import Options, Overlay, ipv4, virtual_nodes

PLAIN, WIREGUARD, ENCRYPTED = "veth, MTU 1500", "WireGuard", "cluster-ip, encrypted"
# Name of the row -> options of cluster-ip; None: without it.
ROWS = {PLAIN: None, "cluster-ip": (), "cluster-ip, MTU 65520": ("--mtu", "65520"), "cluster-ip, 2 queues": ("--queues", "2"),
        "cluster-ip, spin 50 us": ("--spin", "50"), ENCRYPTED: (), WIREGUARD: None}
COLUMNS = ("Gbit/s", "4 conn.", "retrans", "rtt us", "loaded", "s/GB", "daemons")


def busy_seconds():
    """Processor time of the machine that was not idle."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:7])) / os.sysconf("SC_CLK_TCK")


class Network:
    """Two nodes, and the address of the second in the network of a row."""

    def __init__(self, cluster, row, tunnel):
        self.cluster, self._case, self._daemons = cluster, unittest.TestCase(), []
        self.address = cluster.address(2)
        if row == WIREGUARD:
            self._daemons, self.address = [wireguard.Tunnel(self._case, cluster, tunnel)], wireguard.address(2)
        elif row != PLAIN:
            settings = {}
            if row == ENCRYPTED:
                directory = self._case.enterContext(tempfile.TemporaryDirectory())
                settings = {"FI_CLUSTER_KEY_FILE": overlay.write_key(os.path.join(directory, "key")), "FI_CLUSTER_SECURITY": "encrypt"}
            over = Overlay(self._case, cluster, 2, *ROWS[row], **settings)
            self._daemons, self.address = list(over.daemons.values()), ipv4(2)

    def close(self):
        self._case.doCleanups()

    def daemons_seconds(self):
        return sum(daemon.processor_seconds() for daemon in self._daemons)

    def _iperf(self, seconds, connections):
        server = virtual_nodes.start(self.cluster.command(2, "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
        while not any(":1451 " in line and " 0A " in line for line in self.cluster.sockets(2, "tcp6")):
            time.sleep(0.02)
        return server, virtual_nodes.start(
            self.cluster.command(1, "iperf3", "-J", "-c", self.address, "-t", str(seconds), "-P", str(connections)),
            stdout=subprocess.PIPE, text=True)

    @staticmethod
    def _end(server, client):
        said = json.loads(client.communicate()[0])["end"]
        server.wait()
        return said["sum_received"]["bits_per_second"] / 1e9, said["sum_received"]["bytes"] / 1e9, said["sum_sent"]["retransmits"]

    def round_trip_us(self, count):
        said = self.cluster.run(1, "ping", "-q", "-c", str(count), "-i", "0.002", self.address)
        return float(said.rpartition("= ")[2].split("/")[1]) * 1000

    def measure(self, seconds):
        idle = self.round_trip_us(500)
        busy, ours = busy_seconds(), self.daemons_seconds()
        rate, gigabytes, again = self._end(*self._iperf(seconds, 1))
        busy, ours = busy_seconds() - busy, self.daemons_seconds() - ours
        running = self._iperf(seconds, 1)
        time.sleep(1)
        loaded = self.round_trip_us(500)
        self._end(*running)
        several, _, _ = self._end(*self._iperf(seconds, 4))
        return rate, several, again, idle, loaded, busy / gigabytes, ours / gigabytes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--provider", required=True)
    parser.add_argument("--seconds", type=int, default=5, help="of each stream (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--wireguard", metavar="PROGRAM", help="wireguard-go (default: the kernel's, or the one in the path)")
    parser.add_argument("--only", metavar="ROW", action="append", choices=ROWS, help="this row (may be repeated)")
    options = parser.parse_args()
    Options.program, Options.provider = options.program, options.provider
    overlay.require("ping", "iperf3")
    cluster = virtual_nodes.make(2, suffix="-ip-table")
    found, tunnel = {name: [] for name in options.only or ROWS}, None
    try:
        if WIREGUARD in found:
            try:
                tunnel = wireguard.implementation(cluster, options.wireguard)
            except wireguard.NotHere as reason:
                print(f"without {WIREGUARD}: {reason}", flush=True)
                del found[WIREGUARD]
        for _ in range(options.repetitions):
            for name, results in found.items():
                network = Network(cluster, name, tunnel)
                try:
                    results.append(network.measure(options.seconds))
                finally:
                    network.close()
    finally:
        cluster.down()
    if WIREGUARD in found:
        found[f"{WIREGUARD}, {'wireguard-go' if tunnel else 'kernel'}"] = found.pop(WIREGUARD)
    print(f"{'':24}" + "".join(f"{column:>9}" for column in COLUMNS))
    for name, results in found.items():
        print(f"{name:24}" + "".join(f"{statistics.median(column):9.2f}" for column in zip(*results)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
