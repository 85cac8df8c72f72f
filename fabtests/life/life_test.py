"""How an endpoint reacts when peers die, are stopped, fork or come back: fabtests/life.

    life_test.py --build BUILD --program life_peer [--rounds N] [--table] [test...]

Each scenario says within which time every pending operation ends. With --rounds scenarios of death are repeated, and a
table shows the median and the worst time.
"""
import argparse
import collections
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import unittest

from life_process import Life, Process, acquaint, exchange, virtual_nodes

BIG = 4 << 20
LATE = float(os.environ.get("LIFE_PATIENCE", "1"))  # times as much: on a machine that does much else
LOCAL, REMOTE = 0.6, 1.0
DELAY = 0.5  # of the report that a process on this node has ended: its launcher may end the whole job meanwhile
EXEC = 2.0  # looked for once a second
ROUNDS = 1
Times = collections.defaultdict(list)


class LifeCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, suffix=f"-{cls.__name__.lower()}")
        cls.addClassCleanup(cls.cluster.down)

    def start(self, node, **more):
        process = Process(self.cluster.command(node), **more)
        self.addCleanup(process.close)
        return process

    def pair(self, remote=True, **settings):
        """Two processes that have met; and the first one's handle of the second."""
        one, other = self.start(1, **settings), self.start(2 if remote else 1, **settings)
        return one, other, acquaint(one, other)[0]

    def all_end(self, process, operations, died, bound, scenario, others=()):
        """Each operation ends with an error that has a cause, in time."""
        for operation in operations:
            end = process.end(operation)
            self.assertIsNotNone(end, f"{scenario}: {operation} never ends; {process.log()}")
            error, at, text = end
            self.assertNotEqual(error, 0, f"{scenario}: {operation} succeeded")
            self.assertTrue(text, f"{scenario}: no cause")
            Times[scenario].append(at - died)
            self.assertLess(at - died, bound * LATE, f"{scenario}: {operation} ({text}); {process.log()}")
        for operation in others:
            self.assertNotIn(operation, process.ends, f"{scenario}: {operation} has ended")

    def lost(self, process, scenario):
        self.assertTrue(process.until(lambda: process.losses), f"{scenario}: no event")
        self.assertEqual(len(process.losses), 1)

    def pending(self, process, handle, kinds):
        return [process.post(kind, 8 if kind in ("recv", "any", "atomic") else BIG, handle) for kind in kinds]


class Death(LifeCase):
    def test_local(self):
        for _ in range(ROUNDS):
            one, other, handle = self.pair(remote=False, FI_CLUSTER_END_ABANDONED="no")
            pending = self.pending(one, handle, ("recv", "send"))
            wildcard = one.post("any", 8, 0)
            died = other.kill()
            time.sleep(DELAY / 5)
            pending.append(one.post("send", 8, handle))  # its ring must not swallow it: a successor may come
            self.all_end(one, pending, died, LOCAL, "process on this node killed", [wildcard])
            self.lost(one, "local")
            for operation in pending:
                self.assertGreater(one.ends[operation][1] - died, DELAY - 0.01, "the launcher had no time to end the job")

    def test_local_executes_another_program(self):
        one, other, handle = self.pair(remote=False)
        pending = self.pending(one, handle, ("recv", "send"))
        began = time.monotonic()
        other.do("exec")
        self.all_end(one, pending, began, EXEC, "process on this node executes another program")
        other.kill()

    def test_local_at_once_afterwards(self):
        one, other, handle = self.pair(remote=False)
        other.kill()
        self.lost(one, "local")
        before = one.losses[0][1]
        self.all_end(one, [one.post("send", 8, handle)], before, 5, "operation with a peer that is lost")
        self.all_end(one, [one.post("recv", 8, handle)], before, 10, "receive from a peer that is lost")

    def test_remote(self):
        for _ in range(ROUNDS):
            one, other, handle = self.pair(FI_CLUSTER_END_ABANDONED="no")
            pending = self.pending(one, handle, ("recv", "send", "read"))
            for operation in pending[2:]:
                self.assertEqual(one.end(operation)[0], 0)
            other.signal(signal.SIGSTOP)
            pending = pending[:2] + self.pending(one, handle, ("write", "read", "atomic"))
            wildcard = one.post("any", 8, 0)
            self.all_end(one, pending, other.kill(), REMOTE, "process on another node killed", [wildcard])
            self.lost(one, "remote")

    def test_remote_receives_only(self):
        for _ in range(ROUNDS):
            one, other, handle = self.pair()
            pending = self.pending(one, handle, ("recv",))
            self.all_end(one, pending, other.kill(), REMOTE, "the same, and only a receive waits for it")

    def test_remote_without_icmp(self):
        # A rate of none: as if a filter dropped them.
        self.cluster.run(2, "sh", "-c", "for s in msgs_per_sec msgs_burst; do echo 0 > /proc/sys/net/ipv4/icmp_$s; done; "
                                        "echo 2000000000 > /proc/sys/net/ipv4/icmp_ratelimit")
        self.addCleanup(self.cluster.run, 2, "sh", "-c", "echo 1000 > /proc/sys/net/ipv4/icmp_msgs_per_sec; "
                                             "echo 50 > /proc/sys/net/ipv4/icmp_msgs_burst; echo 1000 > /proc/sys/net/ipv4/icmp_ratelimit")
        for _ in range(ROUNDS):
            one, other, handle = self.pair()
            pending = self.pending(one, handle, ("recv", "send"))
            self.all_end(one, pending, other.kill(), REMOTE, "the same, ICMP filtered")

    def test_sender_dies_while_it_is_pulled(self):
        one, other, handle = self.pair()
        back = other.peer(one.name)
        other.post("send", BIG, back)
        other.signal(signal.SIGSTOP)
        pending = [one.post("recv", BIG, handle)]
        self.all_end(one, pending, other.kill(), REMOTE, "sender of a large message killed")

    def test_never_met(self):
        one, other = self.start(1), self.start(2)
        handle = one.peer(other.name)
        died = other.kill()
        self.all_end(one, [one.post("recv", 8, handle)], died, 4, "receive from a peer never met")

    def test_node(self):
        for _ in range(ROUNDS):
            one, other, handle = self.pair(FI_CLUSTER_PEER_TIMEOUT="1000", FI_CLUSTER_OUTAGE="0")
            pending = self.pending(one, handle, ("recv", "send"))
            self.cluster.run(2, "ip", "link", "set", "eth0", "down")
            self.addCleanup(self.cluster.run, 2, "ip", "link", "set", "eth0", "up")
            died = other.kill()
            self.all_end(one, pending, died, 2.0, "node gone (peer timeout 1 s)")
            self.cluster.run(2, "ip", "link", "set", "eth0", "up")


class Stopped(LifeCase):
    def stop_and_go_on(self, remote):
        one, other, handle = self.pair(remote, FI_CLUSTER_PEER_TIMEOUT="400")
        other.signal(signal.SIGSTOP)
        pending = self.pending(one, handle, ("recv", "send"))
        ended = one.until(lambda: any(operation in one.ends for operation in pending) or one.losses, 2.5)
        self.assertFalse(ended, f"a stopped process is taken for dead: {one.log()}")
        other.signal(signal.SIGCONT)
        received = other.post("any", BIG, 0)
        self.assertEqual(other.end(received)[0], 0)
        self.assertEqual(one.end(pending[1])[0], 0)
        sent = other.post("send", 8, other.peer(one.name))
        self.assertEqual([other.end(sent)[0], one.end(pending[0])[0]], [0, 0])
        self.assertFalse(one.losses + other.losses)

    def test_remote(self):
        self.stop_and_go_on(True)

    def test_local(self):
        self.stop_and_go_on(False)

    def test_local_first_access_delays_no_other(self):
        one, other, handle = self.pair(remote=False)
        other.signal(signal.SIGSTOP)
        begun = time.monotonic()
        written = one.post("write", 8, handle)
        one.peer(other.name)  # answered behind it
        self.assertLess(time.monotonic() - begun, 0.5 * LATE, "the call that posts a write waits for a stopped process")
        other.signal(signal.SIGCONT)
        self.assertEqual(one.end(written)[0], 0)

    def test_before_it_was_ever_called(self):
        one, other = (self.start(node, FI_CLUSTER_PEER_TIMEOUT="400") for node in (1, 2))
        handle = one.peer(other.name)
        received = other.post("any", 8, 0)
        other.peer(one.name)
        other.signal(signal.SIGSTOP)
        pending = [one.post("send", 8, handle), one.post("write", 8, handle)]
        ended = one.until(lambda: any(operation in one.ends for operation in pending) or one.losses, 2.5)
        self.assertFalse(ended, f"a stopped process is taken for dead: {one.log()}")
        other.signal(signal.SIGCONT)
        self.assertEqual([other.end(received)[0], *(one.end(operation)[0] for operation in pending)], [0, 0, 0])


class Fork(LifeCase):
    def parent_dies(self, remote, bound):
        for what in ("live", "exec"):
            one, other, handle = self.pair(remote)
            other.fork(what)
            exchange(one, other, handle)
            pending = self.pending(one, handle, ("recv", "send"))
            where = "another node" if remote else "this node"
            self.all_end(one, pending, other.kill(), bound, f"process on {where} killed, a child of it lives ({what})")

    def test_parent_dies_local(self):
        self.parent_dies(False, LOCAL)

    def test_parent_dies_remote(self):
        self.parent_dies(True, REMOTE)

    def test_child_harms_no_process(self):
        for remote in (False, True):
            one, other, handle = self.pair(remote)
            other.fork("use")
            self.assertGreater(other.used(), 0)
            for what in ("close", "exec"):
                other.fork(what)
                exchange(one, other, handle)
                exchange(one, other, handle, BIG)
                exchange(other, one, other.peer(one.name), BIG)
                written = [one.post("write", BIG, handle), one.post("write", 8, handle)]
                self.assertEqual([one.end(operation)[0] for operation in written], [0, 0])
            self.assertFalse(one.losses + other.losses)


class Return(LifeCase):
    def come_back(self, remote):
        node = 2 if remote else 1
        one, other = self.start(1, FI_CLUSTER_END_ABANDONED="no"), self.start(node, port=20011)
        handle, _ = acquaint(one, other)
        waiting = one.post("any", 8, 0)
        other.kill()
        self.lost(one, "return")  # though only a receive from any sender waits
        self.assertNotIn(waiting, one.ends)
        again = self.start(node, port=20011)
        self.assertEqual(again.name, other.name)
        called = again.post("send", 8, again.peer(one.name))
        self.assertEqual([again.end(called)[0], one.end(waiting)[0]], [0, 0])
        exchange(one, again, handle)
        one.post("any", 8, 0)
        again.kill()
        self.assertTrue(one.until(lambda: len(one.losses) == 2))
        third = self.start(node, port=20011)
        received = third.post("any", 8, 0)
        while True:  # it waits to be called
            error = one.end(one.post("send", 8, handle))[0]
            if error == 0:
                break
        self.assertEqual(third.end(received)[0], 0)

    def test_remote(self):
        self.come_back(True)

    def test_local(self):
        self.come_back(False)


class Why(LifeCase):
    """cluster-info reports a stuck process."""

    TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util", "cluster-info")

    def ask(self, process, *words):
        said = subprocess.run([self.TOOL, "--build", Life.build, "--pid", str(process.pid), *words], capture_output=True,
                              text=True, timeout=60, check=True)
        return said.stdout

    @unittest.skipUnless(os.geteuid() == 0, "processes of other namespaces are for root")
    def test_finds_processes_of_all_network_namespaces(self):
        processes = [self.start(node) for node in (1, 2)]
        said = subprocess.run([self.TOOL, "--build", Life.build, "--all"], capture_output=True, text=True, timeout=60, check=True).stdout
        inside = subprocess.run([*self.cluster.command(1), self.TOOL, "--build", Life.build, "--all"], capture_output=True,
                                text=True, timeout=60, check=True).stdout
        for process, node in zip(processes, (1, 2)):
            if os.path.exists("/proc/sys/net/core/dev_weight"):
                self.assertIn(f"Process {process.pid} life_peer", said)
            self.assertEqual(f"Process {process.pid} life_peer" in inside, node == 1, "in a namespace only its own")

    def operations(self, process, wanted):
        """The pending operations, once each has an age."""
        for _ in range(200):
            endpoint, = json.loads(self.ask(process, "--json"))["processes"][0]["endpoints"]
            found = endpoint.get("operations", [])
            if len(found) == wanted and all(each.get("age_ns", 0) > 0 for each in found):
                return found
            process.take()
        self.fail(f"{wanted} operations expected: {found}")

    @unittest.skipUnless(os.geteuid() == 0, "processes of other namespaces are for root")
    def test_says_what_each_peer_owes(self):
        for remote in (False, True):
            one, other, handle = self.pair(remote)
            other.signal(signal.SIGSTOP)
            for kind in ("send", "recv", "any", "atomic"):
                one.post(kind, 8 if kind != "send" else BIG, handle)
            found = {(each["operation"], each["peer"] != "any"): each for each in self.operations(one, 4)}
            text = self.ask(one, "--why")
            self.assertEqual(found["receive", True]["waits_for"], "to send a message that matches it")
            self.assertIn(found["send", True]["waits_for"], ("to post a receive that matches it", "to take earlier messages"))
            self.assertEqual(found["send", True]["bytes"], BIG)
            self.assertEqual(found["atomic", True]["peer"], found["send", True]["peer"])
            self.assertIn(("receive", False), found)
            self.assertRegex(text, rf"Process {one.pid} life_peer: .* has waited .* for .*"
                                   r"(to send a message that matches it|to post a receive|to take what).*3 more operations are in progress")
            other.signal(signal.SIGCONT)

    @unittest.skipUnless(os.geteuid() == 0, "processes of other namespaces are for root")
    def test_names_messages_that_no_receive_matches(self):
        one, other, handle = self.pair()
        back = other.peer(one.name)
        for _ in range(3):
            self.assertEqual(other.end(other.post("send", 8, back))[0], 0)
        third = self.start(2)
        one.post("recv", 8, one.peer(third.name))
        self.operations(one, 1)
        self.assertIn("to send a message that matches it", self.ask(one, "--why"))
        self.assertIn("nothing is in progress", self.ask(other, "--why"))
        self.assertIn("receive", self.ask(one))
        self.assertTrue(handle)


def print_table():
    print(f"{'what':68} {'n':>4} {'median':>9} {'worst':>9}")
    for scenario, times in Times.items():
        print(f"{scenario:68} {len(times):4} {statistics.median(times) * 1000:6.0f} ms {max(times) * 1000:6.0f} ms")


def main():
    global ROUNDS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=1, help="of each death (default: %(default)s)")
    parser.add_argument("--table", action="store_true", help="prints the times")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    Life.program, Life.build = os.path.abspath(options.program), os.path.abspath(options.build)
    Life.plugin = os.path.join(os.path.abspath(options.build), "prov", "cluster")
    ROUNDS = options.rounds
    virtual_nodes.require()
    result = unittest.main(argv=sys.argv[:1] + options.only, exit=False, verbosity=1).result
    if options.table:
        print_table()
    sys.exit(not result.wasSuccessful())


main()
