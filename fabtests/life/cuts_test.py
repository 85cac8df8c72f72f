"""Cables are cut, in one direction or both, and restored; nodes vanish and return: fabtests/life.

    cuts_test.py --build BUILD --program life_peer [test...]

Both processes live on unless a test says otherwise. Each loses the other in bounded time and later reaches it again
without opening new objects.
"""
import signal
import time

from life_process import LATE, Case, Process, acquaint, exchange, run_tests, virtual_nodes

BIG = 4 << 20
TIMEOUT = 1.0  # of the peer
# The provider counts idle time only up to its next check, and it may have asked the peer just before.
BOUND = 2 * TIMEOUT
PAUSE = 2.5


class Cuts(Case):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, "--rails", "2", suffix="-cuts")
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.addCleanup(self.cluster.faults, "--clear")

    def start(self, node, port=None, **settings):
        settings.setdefault("FI_CLUSTER_PEER_TIMEOUT", str(round(TIMEOUT * 1000)))
        settings.setdefault("FI_CLUSTER_OUTAGE", "0")  # there is only one peer: outage_test.py has more
        settings.setdefault("FI_CLUSTER_END_ABANDONED", "no")
        process = Process(self.cluster.command(node), port, FI_LOG_LEVEL="warn", **settings)
        self.addCleanup(process.close)
        return process

    def pair(self, **settings):
        processes = [self.start(node, **settings) for node in (1, 2)]
        return processes, acquaint(*processes)

    def cut(self, *where):
        self.cluster.faults("--loss", "100%", *where)
        return time.monotonic()

    def reach(self, sender, receiver, handle):
        """A message arrives, though earlier ones may fail: the provider calls a lost peer, which takes a moment to
        answer."""
        received = receiver.post("any", 8, 0)
        deadline = time.monotonic() + 10 * LATE
        while sender.end(sender.post("send", 8, handle))[0] != 0:
            self.assertLess(time.monotonic(), deadline, f"not reached again; {sender.log()}; {receiver.log()}")
        self.assertEqual(receiver.end(received)[0], 0)

    def both_reach(self, processes, handles):
        for sender, receiver, handle in ((*processes, handles[0]), (*processes[::-1], handles[1])):
            self.reach(sender, receiver, handle)
            exchange(sender, receiver, handle, BIG)

    def pending(self, process, handle):
        return [process.post("recv", 8, handle), process.post("send", BIG, handle), process.post("write", 8, handle)]

    def test_all_rails(self):
        processes, handles = self.pair()
        since = self.cut("--nodes", "2", "--direction", "both")
        operations = [self.pending(process, handle) for process, handle in zip(processes, handles)]
        for process, pending in zip(processes, operations):
            self.all_end(process, pending, since, BOUND)
        self.cluster.faults("--clear")
        self.both_reach(processes, handles)

    def one_way(self, direction):
        """The cut is one-way: the side whose frames are lost still hears the other, as long as that one tries."""
        processes, handles = self.pair()
        since = self.cut("--nodes", "2", "--direction", direction)
        operations = [self.pending(process, handle) for process, handle in zip(processes, handles)]
        for process, pending in zip(processes, operations):
            self.all_end(process, pending, since, 2 * BOUND)
        self.cluster.faults("--clear")
        self.both_reach(processes, handles)

    def test_one_way_from(self):
        self.one_way("from")

    def test_one_way_to(self):
        self.one_way("to")

    def test_one_way_and_one_side_waits(self):
        """Only the side whose frames arrive waits, for a receive."""
        for waits in (0, 1):
            processes, handles = self.pair()
            since = self.cut("--nodes", "2", "--direction", "from")
            self.all_end(processes[waits], [processes[waits].post("recv", 8, handles[waits])], since, 2 * BOUND)
            self.cluster.faults("--clear")
            self.both_reach(processes, handles)

    def test_a_moment(self):
        """The cut is shorter than the peer timeout, and one process is stopped meanwhile, like a paused guest: neither
        loses the other."""
        processes, handles = self.pair(FI_CLUSTER_PEER_TIMEOUT=str(round(PAUSE * 2000)))
        processes[1].post("any", BIG, 0)
        processes[1].signal(signal.SIGSTOP)
        self.cut("--nodes", "2", "--direction", "both")
        sent = processes[0].post("send", BIG, handles[0])
        self.assertIsNone(processes[0].end(sent, PAUSE), processes[0].log())
        self.cluster.faults("--clear")
        processes[1].signal(signal.SIGCONT)
        self.assertEqual(processes[0].end(sent)[0], 0)
        self.both_reach(processes, handles)
        self.assertFalse(processes[0].losses + processes[1].losses)

    def test_a_pause_is_not_counted(self):
        """A process that was stopped for longer than the peer timeout declares no peer dead, since it asked none
        meanwhile."""
        processes, handles = self.pair()
        pending = [processes[1].post("recv", 8, handles[1]), processes[1].post("send", BIG, handles[1])]
        processes[1].signal(signal.SIGSTOP)
        self.assertFalse(processes[0].until(lambda: processes[0].losses, PAUSE))
        processes[0].post("any", BIG, 0)
        processes[1].signal(signal.SIGCONT)
        self.assertEqual(processes[1].end(pending[1])[0], 0)
        self.assertEqual(processes[0].end(processes[0].post("send", 8, handles[0]))[0], 0)
        self.assertEqual(processes[1].end(pending[0])[0], 0)
        self.assertFalse(processes[0].losses + processes[1].losses)

    def narrow(self, *nodes):
        """Longer packets to these nodes are lost silently, as in a tunnel that sends no ICMP."""
        for node in nodes:
            for rail in (0, 1):
                self.cluster.run("switch", "ip", "link", "set", f"n{node}r{rail}", "mtu", "1300")
                self.addCleanup(self.cluster.run, "switch", "ip", "link", "set", f"n{node}r{rail}", "mtu", "1500")

    def test_long_frames_get_lost(self):
        """The path is narrow from the beginning, or gets narrow later; over both links."""
        for link in ("packet", "udp"):
            for before in (True, False):
                with self.subTest(link=link, before=before):
                    if before:
                        self.narrow(1, 2)
                    processes, handles = self.pair(FI_CLUSTER_LINK=link)
                    self.both_reach(processes, handles)
                    if not before:
                        self.narrow(2)
                    for _ in range(3):
                        self.both_reach(processes, handles)
                    self.assertFalse(processes[0].losses + processes[1].losses, processes[0].log())
                    self.doCleanups()

    def test_node_of_a_stopped_process(self):
        """The kernel of a stopped peer answered all the time, and now no longer does."""
        processes, handles = self.pair()
        processes[1].signal(signal.SIGSTOP)
        pending = self.pending(processes[0], handles[0])
        self.assertFalse(processes[0].until(lambda: processes[0].losses or pending[0] in processes[0].ends, PAUSE))
        # An answer counts for some time; all later questions must stay unanswered.
        self.all_end(processes[0], pending, self.cut("--nodes", "2", "--direction", "both"), BOUND + 2)

    def test_reboot(self):
        """The node vanishes silently; a new process on its address serves those that knew the old one."""
        one, other = self.start(1), self.start(2, port=20031)
        handle, _ = acquaint(one, other)
        since = self.cut("--nodes", "2", "--direction", "both")
        pending = self.pending(one, handle)
        other.kill()
        self.all_end(one, pending, since, BOUND)
        self.cluster.faults("--clear")
        again = self.start(2, port=20031)
        self.assertEqual(again.name, other.name)
        back = again.peer(one.name)
        self.both_reach([one, again], [handle, back])

    def set_rail(self, node, rail, state):
        self.cluster.run("switch", "ip", "link", "set", f"n{node}r{rail}", state)
        self.addCleanup(self.cluster.run, "switch", "ip", "link", "set", f"n{node}r{rail}", "up")

    def test_one_rail_without_carrier(self):
        """The port of the switch goes down, so that the node's own interface knows. Nothing waits for its return."""
        for node, rail in ((1, 1), (2, 1), (1, 0), (2, 0)):
            with self.subTest(node=node, rail=rail):
                processes, handles = self.pair()  # new processes know of no earlier rail failure
                for _ in range(5):
                    self.both_reach(processes, handles)
                self.set_rail(node, rail, "down")
                since = time.monotonic()
                for _ in range(10):
                    self.both_reach(processes, handles)
                self.assertLess(time.monotonic() - since, 2 * LATE)
                self.set_rail(node, rail, "up")
                self.both_reach(processes, handles)
                self.assertFalse(processes[0].losses + processes[1].losses)

    def test_first_rail_down_at_start(self):
        """Of one node: with another one named on all nodes nothing is missed, and without it the error says what to look at."""
        self.set_rail(2, 0, "down")
        one, other = (self.start(node, FI_CLUSTER_IFACE="eth1") for node in (1, 2))
        self.both_reach([one, other], acquaint(one, other))
        self.assertFalse(one.losses + other.losses)
        one, other = self.start(1), self.start(2)
        since = time.monotonic()
        self.all_end(other, [other.post("send", 8, other.peer(one.name))], since, BOUND)
        self.assertRegex(other.log(), "peer unreachable.*cable")

    def test_first_rail_comes_up_later(self):
        for node in (1, 2):
            self.set_rail(node, 0, "down")
        processes, handles = self.pair(FI_CLUSTER_RAILS="eth0")
        for node in (1, 2):
            self.set_rail(node, 0, "up")
        carried = [self.cluster.links(node)["eth0"]["stats64"]["rx"]["bytes"] for node in (1, 2)]
        for _ in range(100):
            self.both_reach(processes, handles)
            now = [self.cluster.links(node)["eth0"]["stats64"]["rx"]["bytes"] for node in (1, 2)]
            if all(after - before > BIG / 10 for before, after in zip(carried, now)):
                break
        else:
            self.fail(f"eth0 carries nothing: {carried}, {now}")
        for node in (1, 2):
            self.set_rail(node, 1, "down")
        self.both_reach(processes, handles)
        self.assertFalse(processes[0].losses + processes[1].losses)


if __name__ == "__main__":
    run_tests(__doc__)
