"""Endpoints on a range of ports, behind firewalls that pass only this range: fabtests/life.

    ports_test.py --build BUILD --program life_peer --conformance conformance [test...]

The rules are those that cluster-info --ports prints.
"""
import os
import time

from life_process import LATE, Case, Life, Process, acquaint, exchange, run_tests, virtual_nodes

BIG = 4 << 20
FIRST, LAST = 40000, 40015
RANGE = f"{FIRST}-{LAST}"
TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util", "cluster-info")
# Everything else is dropped, in both directions.
CLOSED = ("add table inet filter", "add chain inet filter input { type filter hook input priority 0; policy drop; }",
          "add chain inet filter output { type filter hook output priority 0; policy drop; }",
          "add rule inet filter input iifname lo accept", "add rule inet filter output oifname lo accept")
# Messages, remote access, and the death of a peer.
TESTS = "Message.*:Rma.*:Failure.APeerThatDies*"
CONFORMANCE = None


def port_of(process):
    return int(process.name[4:8], 16)


class Ports(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix="-ports")
        cls.addClassCleanup(cls.cluster.down)

    def start(self, node=1, **settings):
        settings.setdefault("FI_CLUSTER_PORTS", RANGE)
        process = Process(self.cluster.command(node), FI_LOG_LEVEL="warn", **settings)
        self.addCleanup(process.close)
        return process

    def close_nodes(self):
        printed = self.cluster.run(1, "env", f"FI_CLUSTER_PORTS={RANGE}", TOOL, "--build", Life.build, "--ports")
        rules = [line.removeprefix("nft ") for line in printed.splitlines() if line.startswith("nft ")]
        self.assertTrue(rules, printed)
        for node in (1, 2):
            for rule in (*CLOSED, *rules):
                self.cluster.run(node, "nft", rule)
            self.addCleanup(self.cluster.run, node, "nft", "delete table inet filter")

    def test_ports_are_used_in_order_and_again(self):
        processes = [self.start() for _ in range(4)]
        self.assertEqual([port_of(each) for each in processes], [FIRST, FIRST + 1, FIRST + 2, FIRST + 3])
        for again in (1, 2):
            processes[again].kill()
            self.assertEqual(port_of(self.start()), FIRST + again)
        self.assertEqual(port_of(self.start(2)), FIRST, "another node")

    def test_no_port_is_left(self):
        for _ in range(2):
            self.start(FI_CLUSTER_PORTS="41000-41001")
        with self.assertRaises(RuntimeError) as failure:
            self.start(FI_CLUSTER_PORTS="41000-41001")
        self.assertIn("no port of FI_CLUSTER_PORTS=41000-41001 is free", str(failure.exception))

    def test_only_these_ports_are_open(self):
        self.close_nodes()
        for link in ("packet", "udp"):
            with self.subTest(link=link):
                one, other = self.start(1, FI_CLUSTER_LINK=link), self.start(2, FI_CLUSTER_LINK=link)
                handle, back = acquaint(one, other)
                for size in (8, BIG):
                    exchange(one, other, handle, size)
                    exchange(other, one, back, size)
                ended = [one.end(one.post(kind, 8, handle))[0] for kind in ("write", "read", "atomic")]
                self.assertEqual(ended, [0, 0, 0])
                pending = [one.post("recv", 8, handle), one.post("send", BIG, handle)]
                self.all_end(one, pending, other.kill(), 1.0)  # its kernel answers on TCP
                one.close()

    def test_other_ports_are_closed(self):
        self.close_nodes()
        one, other = (self.start(node, FI_CLUSTER_PORTS="", FI_CLUSTER_LINK="udp", FI_CLUSTER_PEER_TIMEOUT="1000")
                      for node in (1, 2))
        since = time.monotonic()
        self.all_end(one, [one.post("send", 8, one.peer(other.name))], since, 2.5)

    def test_conformance(self):
        self.close_nodes()
        for link in ("packet", "udp"):
            with self.subTest(link=link):
                settings = f"FI_CLUSTER_LINK={link} FI_CLUSTER_PORTS={RANGE}"
                environment = {**virtual_nodes.of_provider(Life.plugin), "CONFORMANCE_ENV_A": settings, "CONFORMANCE_ENV_B": settings,
                               "CONFORMANCE_NETNS_A": self.cluster.namespace(1), "CONFORMANCE_NETNS_B": self.cluster.namespace(2)}
                command = self.cluster.command(1, CONFORMANCE, "--gtest_brief=1", f"--gtest_filter={TESTS}")
                self.assertEqual(virtual_nodes.start(command, environment).wait(300 * LATE), 0)


def more(parser):
    parser.add_argument("--conformance", required=True)


def take(options):
    global CONFORMANCE
    CONFORMANCE = os.path.abspath(options.conformance)


if __name__ == "__main__":
    run_tests(__doc__, "nft", more=more, take=take)
