"""Firewalls between two nodes: what passes them, and what the application hears if nothing does: fabtests/life.

    firewalls_test.py --build BUILD --program life_peer [test...]

The receive rings of the packet link are not behind the host's firewall, so the provider itself honours it.
"""
import time

from life_process import LATE, Case, Process, exchange, run_tests, virtual_nodes

LINKS = ("packet", "udp")
KEEPS_STATE = ("iifname lo accept", "meta l4proto icmp accept", "ct state established,related accept", "drop")


class Firewalls(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix="-firewalls")
        cls.addClassCleanup(cls.cluster.down)

    def start(self, link, **settings):
        """A process on each node."""
        processes = [Process(self.cluster.command(node), FI_LOG_LEVEL="warn", FI_CLUSTER_LINK=link, **settings)
                     for node in (1, 2)]
        for process in processes:
            self.addCleanup(process.close)
        return processes

    def install(self, node, hook, *rules):
        for line in ("add table inet test", f"add chain inet test {hook} {{ type filter hook {hook} priority 0; }}",
                     *(f"add rule inet test {hook} {rule}" for rule in rules)):
            self.cluster.run(node, "nft", line)
        self.addCleanup(self.cluster.run, node, "nft", "delete table inet test")

    def fails(self, one, other, bound):
        """A message from `one` ends with an error within the bound. Returns what the application and the log say."""
        since = time.monotonic()
        operation = one.post("send", 8, one.peer(other.name))
        self.all_end(one, [operation], since, bound)
        return one.ends[operation][2] + one.log()

    def on_each_link(self, test, **settings):
        for link in LINKS:
            with self.subTest(link=link):
                test(*self.start(link, **settings))
                self.doCleanups()

    def test_frames_are_dropped(self):
        """TCP does not pass either: otherwise the peer might be stopped, and this side would wait."""
        def test(one, other):
            self.install(2, hook, "meta l4proto { tcp, udp } drop")
            self.assertIn("does a firewall drop UDP?", self.fails(one, other, 3))

        for hook in ("input", "output"):
            with self.subTest(hook=hook):
                self.on_each_link(test, FI_CLUSTER_PEER_TIMEOUT="2000")

    def test_a_firewall_refuses(self):
        def test(one, other):
            self.install(node, hook, f"meta l4proto udp {rule}")
            text = self.fails(one, other, 1.5)
            self.assertIn("a firewall refuses UDP to the peer", text)
            self.assertIn('"cluster-info --ports" prints', text)

        for node, hook, rule in ((2, "input", "reject with icmpx type admin-prohibited"), (1, "output", "reject"),
                                 (1, "output", "drop")):
            with self.subTest(node=node, hook=hook, rule=rule):
                self.on_each_link(test)

    def test_a_firewall_answers_for_the_peer(self):
        def test(one, other):
            self.install(2, "input", "meta l4proto udp reject with icmpx type port-unreachable")
            self.assertIn("a firewall may refuse UDP", self.fails(one, other, 1.5))

        self.on_each_link(test)

    def test_only_the_side_behind_a_firewall_that_keeps_state_can_begin(self):
        def test(one, other):
            self.install(2, "input", *KEEPS_STATE)
            self.fails(one, other, 3)

        self.on_each_link(test, FI_CLUSTER_PEER_TIMEOUT="2000")

    def test_both_sides_of_a_firewall_that_keeps_state_can_send(self):
        def test(one, other):
            self.install(2, "input", *KEEPS_STATE)
            exchange(other, one, other.peer(one.name))
            for size in (8, 1 << 20):
                exchange(one, other, one.peer(other.name), size)

        self.on_each_link(test)

    def test_a_firewall_that_keeps_state_remembers_an_idle_session(self):
        """It forgets a flow after 30 s, the shortest time of Linux."""
        def test(one, other):
            self.install(2, "input", *KEEPS_STATE)
            for kind in ("timeout", "timeout_stream"):
                self.cluster.run(2, "sysctl", "-w", f"net.netfilter.nf_conntrack_udp_{kind}=30")
            handles = other.peer(one.name), one.peer(other.name)
            exchange(other, one, handles[0])
            exchange(one, other, handles[1])
            time.sleep(65)
            since = time.monotonic()
            exchange(one, other, handles[1])
            self.assertLess(time.monotonic() - since, 1 * LATE)

        self.on_each_link(test)


if __name__ == "__main__":
    run_tests(__doc__, "nft")
