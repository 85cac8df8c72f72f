"""Paths that carry shorter frames than both interfaces announce, from the beginning or from some time on:
fabtests/life.

    path_size_test.py --build BUILD --program life_peer [test...]

Messages continue in bounded time, and one log line says why frames are shorter.
"""
import re
import time

from life_process import LATE, Case, Process, acquaint, exchange, run_tests, virtual_nodes

LINKS = ("packet", "udp")
ROUNDS = 20
SIZES = (1150, 1400, 20_000)  # one frame that is shorter than in IPv6, one that is longer, many
# Each frame that is too long takes some retransmission timeouts, and the first that a device refuses 10 ms more.
BOUND = 2.0
WARNING = re.compile(r"path to \S+: frames of (\d+) bytes do not arrive, so frames now have at most (\d+) bytes \(check the MTU")


class PathSize(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix="-size")
        cls.addClassCleanup(cls.cluster.down)

    def pair(self, link):
        processes = []
        for node in (1, 2):
            processes.append(Process(self.cluster.command(node), FI_CLUSTER_LINK=link, FI_LOG_LEVEL="warn"))
            self.addCleanup(processes[-1].close)
        return processes

    def ping_pong(self, processes, handles):
        for size in SIZES:
            since = time.monotonic()
            for _ in range(ROUNDS):
                exchange(*processes, handles[0], size)
                exchange(*processes[::-1], handles[1], size)
            self.assertLess(time.monotonic() - since, BOUND * LATE, f"of {size} bytes")

    def set_mtu(self, where, interface, mtu):
        self.cluster.run(where, "ip", "link", "set", interface, "mtu", str(mtu))
        self.addCleanup(self.cluster.run, where, "ip", "link", "set", interface, "mtu", "1500")

    def ports(self, mtu):
        """A port of the bridge silently refuses longer frames from the node's interface."""
        for node in (1, 2):
            self.set_mtu("switch", f"n{node}r0", mtu)

    def interfaces(self, mtu):
        for node in (1, 2):
            self.set_mtu(node, "eth0", mtu)

    def hop(self, mtu):
        """Behind the bridge longer frames are lost silently; super-frames are cut before."""
        for node in (1, 2):
            self.cluster.run("switch", "tc", "qdisc", "add", "dev", f"n{node}r0", "root", "tbf", "rate", "4gbit",
                             "burst", str(mtu + 14), "latency", "50ms")
            self.addCleanup(self.cluster.run, "switch", "tc", "qdisc", "del", "dev", f"n{node}r0", "root")

    def says(self, process, used):
        """Once; a frame of the size used fits the path."""
        said = WARNING.findall(process.log())
        self.assertEqual([int(size) for _, size in said], [used], process.log())

    def each(self, narrow, used, begins=(True, False)):
        for link in LINKS:
            for before in begins:
                with self.subTest(link=link, before=before):
                    if before:
                        narrow()
                    processes = self.pair(link)
                    since = time.monotonic()
                    handles = acquaint(*processes)
                    self.assertLess(time.monotonic() - since, BOUND * LATE)
                    if not before:
                        self.ping_pong(processes, handles)
                        narrow()
                    self.ping_pong(processes, handles)
                    for process in processes:
                        self.says(process, used)
                        self.assertFalse(process.losses, process.log())
                    self.doCleanups()

    def test_ports_are_narrower_than_interfaces(self):
        """The daily case of containers: one interface says 1500, the port behind it has less."""
        self.each(lambda: self.ports(1400), 1232)

    def test_interfaces_become_narrow(self):
        self.each(lambda: self.interfaces(1200), 548, begins=(False,))

    def test_a_hop_is_narrow(self):
        self.each(lambda: self.hop(1200), 548)

    def test_a_hop_carries_the_least_of_ipv4(self):
        self.each(lambda: self.hop(576), 548)


if __name__ == "__main__":
    run_tests(__doc__)
