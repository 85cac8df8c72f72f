#!/usr/bin/env python3
"""Groups over eight virtual nodes: what one message to seven members puts on each port, with and without loss; a member that
dies, one that leaves, one that multicast does not reach. Bytes and outcomes are compared, times are not."""
import argparse
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

NODES = 8
MEGABYTE = 1_000_000
GROUP, PORT = "239.192.7.7", "7007"
options = None  # of the command line


class Member:
    """A group_member on a node."""

    def __init__(self, cluster, node, **settings):
        environment = virtual_nodes.of_provider(options.provider, FI_CLUSTER_LINK=options.link, FI_LOG_LEVEL="info", **settings)
        self.node = node
        self.log = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"group_member-{os.getpid()}-{node}.log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = virtual_nodes.start(cluster.command(node, options.program, GROUP, PORT), environment, text=True,
                                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.name = self.answer("name")[0]

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self, word):
        line = self.process.stdout.readline().split()
        if not line or line[0] != word:
            with open(self.log, encoding="utf-8") as log:
                raise RuntimeError(f"member on node {self.node} says {line} instead of {word}:\n{log.read()[-3000:]}")
        return line[1:]

    def text(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        os.unlink(self.log)


class Groups(unittest.TestCase):
    KEY = {}

    def members(self, cluster, count=NODES, **settings):
        made = []
        for node in range(1, count + 1):
            made.append(Member(cluster, node, **self.KEY, **settings))
            self.addCleanup(made[-1].close)
        names = [member.name for member in made]
        for member in made:
            member.say("peers", *names)
        for member in made:
            member.say("join")
        for member in made:
            member.answer("joined")
        self.addCleanup(self.end, made)
        return made

    @staticmethod
    def end(made):
        """Closes all at once: a closing member waits for those that do not call the library."""
        for member in made:
            member.process.stdin.close()

    @staticmethod
    def broadcast(made, count, size):
        """One message after the other from the first to all; seconds and failures that it reports."""
        for member in made[1:]:
            member.say("receive", 0, count, size)
        for member in made[1:]:
            member.answer("ready")
        made[0].say("send", count, size)
        result = made[0].answer("sent")
        for member in made[1:]:
            member.answer("received")
        return float(result[0]), int(result[1])

    @staticmethod
    def bytes_at(cluster, count=NODES):
        """The bytes that the switch got from the first node and gave to each other node."""
        links = cluster.links("switch")
        sent = links["n1r0"]["stats64"]["rx"]["bytes"]
        return sent, [links[f"n{node}r0"]["stats64"]["tx"]["bytes"] for node in range(2, count + 1)]

    def wire_share(self, cluster, made):
        """Bytes that a broadcast of a megabyte puts on the sender's port and on the busiest receiver's, each by the message's:
        the least of three series, for a member that does not get a processor in time asks for what is under way."""
        return min(self.one_wire_share(cluster, made) for _ in range(3))

    def one_wire_share(self, cluster, made):
        count = 4
        before = self.bytes_at(cluster)
        self.assertEqual(self.broadcast(made, count, MEGABYTE)[1], 0)
        after = self.bytes_at(cluster)
        sent = (after[0] - before[0]) / count / MEGABYTE
        received = max(b - a for a, b in zip(before[1], after[1])) / count / MEGABYTE
        print(f"{options.link}: sender's port {sent:.3f}, busiest receiver's {received:.3f} of the bytes of the message")
        return sent, received

    def test_one_message_is_once_on_each_port(self):
        cluster = virtual_nodes.make(NODES, "--mtu", "9000", suffix="-wide")
        self.addCleanup(cluster.down)
        made = self.members(cluster)
        self.broadcast(made, 4, MEGABYTE)
        sent, received = self.wire_share(cluster, made)
        self.assertLess(sent, 1.05)
        self.assertLess(received, 1.1)
        cluster.faults("--loss", "1%", "--only", "udp")
        sent, received = self.wire_share(cluster, made)
        self.assertLess(sent, 1.3)
        self.assertLess(received, 1.3)

    def test_members_that_die_leave_or_are_deaf(self):
        cluster = virtual_nodes.make(5, suffix="-group")
        self.addCleanup(cluster.down)
        cluster.run(5, "ip", "link", "set", "eth0", "multicast", "off")
        made = self.members(cluster, 5)
        self.assertEqual(self.broadcast(made, 20, 5000)[1], 0)
        made[1].say("leave")
        made[1].answer("left")
        rest = [made[0], *made[2:]]
        self.assertEqual(self.broadcast(rest, 3, 40000)[1], 0)
        os.kill(made[2].process.pid, signal.SIGKILL)
        rest = [made[0], *made[3:]]
        # A message under way ends with an error that names the dead member, or has outlived it.
        self.broadcast(rest, 3, 2 * MEGABYTE)
        made[0].say("events")
        self.assertEqual(made[0].answer("lost"), ["1"])
        self.assertEqual(self.broadcast(rest, 3, 100)[1], 0)


class KeyedGroups(Groups):
    """The same, sealed."""

    KEY = {"FI_CLUSTER_KEY": "0123456789abcdef" * 4, "FI_CLUSTER_SECURITY": "encrypt"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    parser.add_argument("--program", required=True, help="the program group_member")
    parser.add_argument("--link", choices=("packet", "udp"), default="udp")
    options, rest_of_line = parser.parse_known_args()
    virtual_nodes.require()
    unittest.main(argv=[sys.argv[0], *rest_of_line])
