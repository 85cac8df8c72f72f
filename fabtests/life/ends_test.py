"""How processes end, and what is left of them: fabtests/life.

    ends_test.py --build BUILD --program life_peer [--kills N] [test...]

A process may end without closing, close while it has traffic in flight, or be killed at any point. It then leaves no
file, name, segment or process, and no peer waits forever.
"""
import random
import signal
import time

from life_process import LATE, Case, Process, acquaint, exchange, run_tests, virtual_nodes

BIG = 4 << 20
AT_ONCE, LOCAL, REMOTE = 0.1, 0.6, 1.0
WATCHED = 4.0  # the side waits only for a message from any sender, and the peer is on another node
CLOSES = 2.0  # so long a close waits to send what it owes to peers
SECONDS_MAX = 20
KILLS_SEED = 20
# The places in a node where something could be left.
PLACES = "ls -A /dev/shm $TMPDIR; cat /proc/sysvipc/shm; grep -o '@.*' /proc/net/unix; cut -c1-30 /proc/net/udp /proc/net/packet"


class Ends(Case):
    kills = 10

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix="-ends")
        cls.addClassCleanup(cls.cluster.down)

    def start(self, node, port=None, **settings):
        process = Process(self.cluster.command(node), port, FI_LOG_LEVEL="warn", **settings)
        self.addCleanup(process.close)
        return process

    def pair(self, remote, **settings):
        one, other = self.start(1, **settings), self.start(2 if remote else 1, **settings)
        return one, other, acquaint(one, other)[0]

    def leaves(self, process):
        """Ends it without closing anything; returns the time."""
        process.process.stdin.close()
        process.process.wait(SECONDS_MAX)
        return time.monotonic()

    def closes(self, process):
        """Closes all its objects; returns how long that took."""
        began = time.monotonic()
        process.do("quit")
        self.assertEqual(process.process.wait(SECONDS_MAX), 0, process.log())
        return time.monotonic() - began

    def test_exit_without_close(self):
        for remote in (False, True):
            one, other, handle = self.pair(remote)
            pending = [one.post("recv", 8, handle), one.post("send", BIG, handle)]
            self.all_end(one, pending, self.leaves(other), REMOTE if remote else LOCAL)

    def test_close_with_traffic_in_flight(self):
        """Towards a peer that is stopped, and one that has been killed."""
        for remote in (False, True):
            for number in (signal.SIGSTOP, signal.SIGKILL):
                one, other, handle = self.pair(remote)
                other.signal(number)
                for kind, size in (("send", 8), ("send", BIG), ("write", 8), ("write", BIG), ("recv", 8), ("any", 8)):
                    one.post(kind, size, handle)
                self.assertLess(self.closes(one), (CLOSES + 0.5) * LATE, f"{remote} {number}: {one.log()}")

    def wildcards_end(self, remote, last):
        one, other, handle = self.pair(remote)
        third = self.start(2)
        acquaint(one, third)
        wildcard = one.post("any", 8, 0)
        other.kill()
        self.assertTrue(one.until(lambda: one.losses))
        one.peer(third.name)  # answered after the operations that the loss has ended
        self.assertNotIn(wildcard, one.ends, "one peer is left")
        last(third)
        self.all_end(one, [wildcard], time.monotonic(), WATCHED)
        return one, other

    def test_wildcards_end_with_the_last_peer(self):
        for remote in (False, True):
            self.wildcards_end(remote, Process.kill)

    def test_wildcards_end_when_the_last_peer_closes(self):
        """The other peer was lost: no peer is left that could send."""
        self.wildcards_end(True, self.closes)

    def test_wildcards_of_later_end_at_once_until_a_peer_returns(self):
        for remote in (False, True):
            self.later_ones_end(remote)

    def later_ones_end(self, remote):
        one, _ = self.wildcards_end(remote, Process.kill)
        for _ in range(3):
            self.all_end(one, [one.post("any", 8, 0)], time.monotonic(), AT_ONCE)
        again = self.start(2)
        called = again.post("send", 8, again.peer(one.name))
        self.assertEqual(again.end(called)[0], 0)
        waiting = one.post("any", 8, 0)
        self.assertEqual(one.end(waiting)[0], 0)
        exchange(again, one, again.peer(one.name))

    def test_wildcards_stay_when_all_have_closed(self):
        """A server between two clients."""
        one, other, _ = self.pair(True)
        wildcard = one.post("any", 8, 0)
        self.closes(other)
        again = self.start(2)
        called = again.post("send", 8, again.peer(one.name))
        self.assertEqual([again.end(called)[0], one.end(wildcard)[0]], [0, 0])

    def left(self):
        return [self.cluster.run(node, "sh", "-c", PLACES) for node in (1, 2)]

    def test_killed_at_random_places(self):
        """Three processes exchange traffic on ports that each round reuses. The test kills each at a random moment. Now
        and then one has a forked child, which dies with the rest."""
        chance = random.Random(KILLS_SEED)
        before = self.left()
        for _ in range(-(-self.kills // 3)):
            processes = [self.start(node, port=20041 + number) for number, node in enumerate((1, 1, 2))]
            for process in processes:
                process.do(f"keep 8 {BIG}")
            handles = [[process.peer(each.name) for each in processes if each is not process] for process in processes]
            for serial in range(12):
                for process, known in zip(processes, handles):
                    order = chance.choice(("say o{0} {1} {2} {0}", "put o{0} {1} {2} {0} 0", "add o{0} {2}"))
                    sizes = (8, 5000, 90_000, BIG) if order.startswith("say") else (8, 5000, 90_000)
                    process.do(order.format(serial + 1, chance.choice(sizes), chance.choice(known)))
            if chance.random() < 0.3:
                processes[0].fork("close")
            for process in chance.sample(processes, len(processes)):
                time.sleep(chance.uniform(0, 0.02))  # waits for nothing: the random moment is the test
                process.kill()
            for process in processes:
                process.close()
        deadline = time.monotonic() + SECONDS_MAX
        while self.left() != before and time.monotonic() < deadline:  # a child may still be about to end
            time.sleep(0.05)
        self.assertEqual(self.left(), before)


def add_options(parser):
    parser.add_argument("--kills", type=int, default=Ends.kills, help="processes that are killed (default: %(default)s)")


if __name__ == "__main__":
    run_tests(__doc__, more=add_options, take=lambda options: setattr(Ends, "kills", options.kills))
