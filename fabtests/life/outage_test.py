"""The whole network is away for a while, or one node of it: fabtests/life.

    outage_test.py --build BUILD --program life_peer [--seconds 8] [test...]

While no node hears another, nothing may fail, and afterwards everything goes on. A node that is silent while others are
heard is lost within the peer timeout.
"""
import re
import time

from life_process import LATE, Case, Process, exchange, run_tests, virtual_nodes

BIG = 4 << 20
TIMEOUT = 3.0  # of the peer; shorter than the outage
GOES_ON = 3.0  # after the outage
WARNING = re.compile(r"is cut off|no other node answers")
OVER = re.compile(r"the outage ended after [0-9.]+ s")
SECONDS = 8.0


class Outage(Case):
    NODES, RAILS = 3, 2

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(cls.NODES, "--rails", str(cls.RAILS), suffix="-outage")
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.addCleanup(self.restore)

    def start(self, node, **settings):
        settings.setdefault("FI_CLUSTER_PEER_TIMEOUT", str(round(TIMEOUT * 1000)))
        process = Process(self.cluster.command(node), FI_LOG_LEVEL="warn", **settings)
        self.addCleanup(process.close)
        return process

    def job(self, nodes=(1, 2, 3), **settings):
        """One process on each of these nodes; all have met. handles[i][j]: of j at i."""
        processes = [self.start(node, **settings) for node in nodes]
        handles = [[None if one is other else one.peer(other.name) for other in processes] for one in processes]
        for i, one in enumerate(processes):
            for j, other in enumerate(processes):
                if i < j:
                    exchange(one, other, handles[i][j])
                    exchange(other, one, handles[j][i])
        return processes, handles

    def set_ports(self, state, nodes=None):
        """The ports of the switch, so that the interfaces of the nodes lose their carrier."""
        for node in nodes or range(1, self.NODES + 1):
            for rail in range(self.RAILS):
                self.cluster.run("switch", "ip", "link", "set", f"n{node}r{rail}", state)

    def cut(self, carrier):
        if carrier:
            self.cluster.faults("--loss", "100%")
        else:
            self.set_ports("down")
        return time.monotonic()

    def restore(self):
        self.cluster.faults("--clear")
        self.set_ports("up")
        return time.monotonic()

    @staticmethod
    def lines(process, pattern):
        return [line for line in process.log().splitlines() if pattern.search(line)]

    def nothing_ends(self, processes, seconds):
        for process, pending in processes:
            ended = process.until(lambda p=process, o=pending: p.losses or any(each in p.ends for each in o), seconds)
            self.assertFalse(ended, f"{process.ends} {process.losses}; {process.log()}")
            seconds = 0.01

    def everything_is_away(self, carrier, **settings):
        processes, handles = self.job(**settings)
        since = self.cut(carrier)
        pending = [[process.post("send", BIG, handles[i][(i + 1) % len(processes)]),
                    process.post("recv", BIG, handles[i][(i + 2) % len(processes)]), process.post("any", BIG, 0)]
                   for i, process in enumerate(processes)]
        self.nothing_ends(list(zip(processes, pending)), SECONDS - (time.monotonic() - since))
        back = self.restore()
        for i, process in enumerate(processes):
            process.post("send", 8, handles[i][(i + 1) % len(processes)])
        for process, operations in zip(processes, pending):
            for operation in operations:
                error, at, text = process.end(operation)
                self.assertEqual(error, 0, f"{operation}: {text}; {process.log()}")
                self.assertLess(at - back, GOES_ON * LATE, f"{operation}; {process.log()}")
            self.assertFalse(process.losses, process.log())
            self.assertEqual(len(self.lines(process, WARNING)), 1, process.log())
            self.assertTrue(process.until(lambda p=process: self.lines(p, OVER), 1) or self.lines(process, OVER), process.log())
            self.assertEqual(len(self.lines(process, OVER)), 1, process.log())

    def test_ports_are_down(self):
        self.everything_is_away(carrier=False)

    def test_frames_get_lost(self):
        self.everything_is_away(carrier=True)

    def test_frames_get_lost_over_udp(self):
        self.everything_is_away(carrier=True, FI_CLUSTER_LINK="udp", FI_CLUSTER_RAILS="none")

    def test_ports_are_down_over_udp(self):
        self.everything_is_away(carrier=False, FI_CLUSTER_LINK="udp", FI_CLUSTER_RAILS="none")

    def test_one_node_is_silent(self):
        """The third node owes nothing, and is asked whether it hears."""
        processes, handles = self.job()
        self.set_ports("down", [2])
        since = time.monotonic()
        pending = [processes[0].post("send", BIG, handles[0][1]), processes[0].post("recv", 8, handles[0][1])]
        self.all_end(processes[0], pending, since, TIMEOUT + 2)
        self.assertFalse(self.lines(processes[0], WARNING), processes[0].log())
        exchange(processes[0], processes[2], handles[0][2])

    def test_one_cable_is_out(self):
        """Of a node that needs all others; they wait, too, for less than the peer timeout."""
        processes, handles = self.job(FI_CLUSTER_PEER_TIMEOUT="20000")
        self.set_ports("down", [1])
        pending = [[processes[0].post("send", BIG, handles[0][1])], [processes[1].post("recv", BIG, handles[1][0])]]
        self.nothing_ends(list(zip(processes, pending)), SECONDS)
        self.restore()
        for process, operations in zip(processes, pending):
            self.assertEqual(process.end(operations[0])[0], 0, process.log())
        self.assertRegex(processes[0].log(), "this node is cut off: no interface")
        self.assertFalse(self.lines(processes[1], WARNING), processes[1].log())

    def test_a_process_dies_meanwhile(self):
        processes, handles = self.job((1, 2))
        self.cut(carrier=True)
        pending = [processes[0].post("send", BIG, handles[0][1]), processes[0].post("recv", 8, handles[0][1])]
        self.nothing_ends([(processes[0], pending)], TIMEOUT + 1)
        processes[1].kill()
        self.all_end(processes[0], pending, self.restore(), 2.5)

    def test_an_outage_has_a_limit(self):
        processes, handles = self.job((1, 2), FI_CLUSTER_PEER_TIMEOUT="1000", FI_CLUSTER_OUTAGE="3000")
        since = self.cut(carrier=True)
        pending = [processes[0].post("send", BIG, handles[0][1]), processes[0].post("any", 8, 0)]
        self.nothing_ends([(processes[0], pending)], 3)
        self.all_end(processes[0], pending, since, 6)
        self.assertEqual(len(self.lines(processes[0], re.compile("this outage: 3.0 s"))), 1, processes[0].log())


def more(parser):
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of an outage (default: %(default)s)")


def take(options):
    global SECONDS
    SECONDS = options.seconds


if __name__ == "__main__":
    run_tests(__doc__, more=more, take=take)
