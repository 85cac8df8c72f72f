#!/usr/bin/env python3
"""cluster-ip on virtual nodes: programs that know nothing of it use its interface, and nodes, rails and keys fail."""
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import overlay
from overlay import Daemon, Options, Overlay, Stream, ipv4, ipv6, virtual_nodes

MEGABYTES = 200  # of a stream
SUPER_FRAME_BYTES_LEAST = 20000  # of a message of a stream, on average
GAP_SECONDS_MAX = 1.0
BACK_SECONDS_MAX = 5.0
ECHO_PORT = 5007


class TwoNodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared(2)

    def test_ping_by_both_families(self):
        over = Overlay(self, self.cluster, 2)
        for node, other in ((1, 2), (2, 1)):
            for address in (ipv4(other), ipv6(other)):
                self.assertEqual(over.ping(node, address), 3, f"node{node} to {address}")
        # No node has these: they go nowhere, and the others still answer.
        self.assertEqual(over.ping(1, ipv4(9), 1), 0)
        self.assertEqual(over.ping(1, ipv4(2)), 3)
        self.assertGreater(over.daemons[1].stop()["no_node"], 0)

    def test_stream_in_super_frames(self):
        for queues in ("1", "3"):
            over = Overlay(self, self.cluster, 2, "--queues", queues)
            for address in (ipv4(2), ipv6(2)):
                Stream(over, 1, 2, address, MEGABYTES).finish()
            sent, received = over.daemons[1].stop(), over.daemons[2].stop()
            self.assertGreater(sent["sent_bytes"], 2 * MEGABYTES << 20)
            self.assertGreater(sent["sent_bytes"] / sent["sent"], SUPER_FRAME_BYTES_LEAST, sent)
            self.assertEqual((received["received"], received["refused"]), (sent["sent"], 0))

    def test_http_download(self):
        over = Overlay(self, self.cluster, 2)
        with tempfile.TemporaryDirectory() as directory:
            data = random.Random(1).randbytes(50 << 20)
            with open(os.path.join(directory, "file"), "wb") as file:
                file.write(data)
            overlay.start(
                self, self.cluster.command(2, sys.executable, "-m", "http.server", "--bind", ipv4(2), "--directory", directory, "8080"),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            get = ("import hashlib, sys, urllib.request\n"
                   "print(hashlib.sha256(urllib.request.urlopen(sys.argv[1], timeout=30).read()).hexdigest())")
            while not self.cluster.listens(2, 8080):
                time.sleep(0.05)
            said = self.cluster.run(1, sys.executable, "-c", get, f"http://{ipv4(2)}:8080/file")
        self.assertEqual(said.strip(), hashlib.sha256(data).hexdigest())
        self.assertGreater(over.daemons[2].stop()["sent_bytes"], len(data))

    def test_pings_notice_a_killed_daemon(self):
        """They are short packets, whose failure leaves no trace."""
        over = Overlay(self, self.cluster, 2)
        self.assertEqual(over.ping(1, ipv4(2)), 3)
        over.daemons[2].kill()
        self.assertEqual(over.ping(1, ipv4(2), 1), 0)
        over.daemons[1].await_line("node2", "is down: ", "peer's process has ended")

    def test_a_restarted_node_is_told_where_no_packet_travels(self):
        over = Overlay(self, self.cluster, 2)
        over.daemons[2].kill()
        over.start(2)
        over.daemons[2].knows(1)

    def test_a_stopped_daemon_delays_only(self):
        over = Overlay(self, self.cluster, 2)
        stream = Stream(over, 1, 2, ipv6(2), MEGABYTES)
        over.daemons[2].process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        over.daemons[2].process.send_signal(signal.SIGCONT)
        stream.finish()
        self.assertFalse([line for line in over.daemons[1].log() if "is down" in line])

    def test_options_from_a_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(f"# a comment\naddress={ipv4(1)}/24,{ipv6(1)}/64\nnodes=node1,node2\nmtu=9000\ninterface=over0\n")
            file.flush()
            words = self.cluster.command(1, Options.program, "--config", file.name)
            first = overlay.start(self, words, stderr=subprocess.DEVNULL, environment=virtual_nodes.of_provider(Options.provider))
            Daemon(self, self.cluster, 2, (1, 2)).knows(1)
        self.assertEqual(self.cluster.links(1)["over0"]["mtu"], 9000)
        self.cluster.run(1, "ping", "-c", "1", ipv6(2))
        first.terminate()
        self.assertEqual(first.wait(10), 0)
        self.assertNotIn("over0", self.cluster.links(1))

    def test_foreign_sources_are_refused(self):
        over = Overlay(self, self.cluster, 2)
        over.listening(1, "echo", ECHO_PORT)
        self.assertEqual(over.ask(2, ipv4(1), ECHO_PORT, 10, ipv4(2)), [ipv4(1)])
        self.cluster.run(2, "ip", "address", "add", "10.9.7.7/32", "dev", "lo")
        self.addCleanup(self.cluster.run, 2, "ip", "address", "del", "10.9.7.7/32", "dev", "lo")
        received = over.daemons[1].log()
        self.assertEqual(over.ask(2, ipv4(1), ECHO_PORT, 10, "10.9.7.7"), [], received)
        counts = over.daemons[1].stop()
        self.assertGreater(counts["refused"], 0)
        self.assertEqual(counts["no_node"], 0, "the echo has not got the packet, or would have answered")


class TwoNodesForLong(unittest.TestCase):
    """What takes longer than a check may."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared(2)

    def test_datagrams_as_long_as_the_mtu(self):
        for mtu, longest in (("1500", 1472), ("65520", 65492)):
            over = Overlay(self, self.cluster, 2, "--mtu", mtu)
            over.listening(2, "echo", ECHO_PORT)
            # The longest of all travels in fragments with the smaller MTU.
            for length in (0, 1, 1000, 1014, 1015, longest, 65507):
                self.assertEqual(over.ask(1, ipv4(2), ECHO_PORT, length), [ipv4(2)], f"{length} bytes, MTU {mtu}")
            self.assertEqual(self.cluster.links(1)["cluster0"]["mtu"], int(mtu))
            for daemon in over.daemons.values():
                daemon.stop()

    def test_a_stream_outlives_a_killed_daemon(self):
        over = Overlay(self, self.cluster, 2)
        streams = [Stream(over, 1, 2, ipv4(2), 2 * MEGABYTES, 5001), Stream(over, 2, 1, ipv6(1), 2 * MEGABYTES, 5002)]
        time.sleep(0.5)
        over.daemons[2].kill()
        # The reason depends on whether the killed process had answered: "peer's process has ended" or "Connection refused".
        over.daemons[1].await_line("node2", "is down: ")
        self.assertEqual(over.ping(1, ipv4(2), 1), 0)
        over.start(2)
        begun = time.monotonic()
        over.daemons[2].knows(1)
        while over.ping(1, ipv4(2), 1) == 0:
            self.assertLess(time.monotonic() - begun, BACK_SECONDS_MAX)
        for stream in streams:
            stream.finish()


class ThreeNodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared(3)

    def test_all_reach_all(self):
        over = Overlay(self, self.cluster, 3)
        for node in over.nodes:
            for other in over.nodes:
                if node != other:
                    self.assertEqual(over.ping(node, ipv4(other)), 3)
        streams = [Stream(over, sender, 3, ipv4(3), MEGABYTES, port) for sender, port in ((1, 5001), (2, 5002))]
        for stream in streams:
            stream.finish()

    def test_a_killed_node_disturbs_no_other(self):
        over = Overlay(self, self.cluster, 3)
        dead, alive = Stream(over, 1, 3, ipv4(3), 4 * MEGABYTES, 5001), Stream(over, 1, 2, ipv4(2), 2 * MEGABYTES, 5002)
        time.sleep(0.1)
        over.daemons[3].kill()
        alive.finish()
        dead.sender.kill()
        self.assertEqual(over.ping(2, ipv4(1)), 3)

    def test_multicast_and_broadcast_reach_all(self):
        over = Overlay(self, self.cluster, 3)
        for group, asked in (("239.1.2.3", "239.1.2.3"), ("ff05::77", "ff05::77"), ("0.0.0.0", "10.9.0.255")):
            servers = [over.listening(node, "echo", ECHO_PORT, group) for node in (2, 3)]
            address = ipv6 if ":" in group else ipv4
            self.assertEqual(over.ask(1, asked, ECHO_PORT, 1200), [address(2), address(3)], asked)
            for server in servers:
                server.kill()
                server.wait()

    def test_an_address_belongs_to_one_node(self):
        over = Overlay(self, self.cluster, 2)
        words = self.cluster.command(3, Options.program, "--address", f"{ipv4(2)}/24", "--nodes", "node1,node2,node3")
        over.daemons[1].kill()
        over.daemons[1] = Daemon(self, self.cluster, 1, (1, 2, 3))
        over.daemons[1].knows(2)
        overlay.start(self, words, stderr=subprocess.DEVNULL, environment=virtual_nodes.of_provider(Options.provider))
        over.daemons[1].await_line("node3", "has an address of node2: give each node its own --address")
        self.assertEqual(over.ping(1, ipv4(2)), 3)

    def test_other_queues_are_named(self):
        one = Daemon(self, self.cluster, 1, (1, 2), "--queues", "2")
        Daemon(self, self.cluster, 2, (1, 2))
        one.await_line("node2", "has 1 queues, and this node has 2: give all nodes the same --queues")

    def test_only_nodes_with_the_key(self):
        with tempfile.TemporaryDirectory() as directory:
            files = [overlay.write_key(os.path.join(directory, name), name) for name in ("0a", "0b")]
            daemons = [Daemon(self, self.cluster, node, (1, 2, 3), FI_CLUSTER_KEY_FILE=files[node == 3], FI_CLUSTER_SECURITY="encrypt")
                       for node in (1, 2, 3)]
            daemons[0].knows(2)
            daemons[1].knows(1)
            time.sleep(1)
            self.assertFalse([line for daemon in daemons[:2] for line in daemon.log() if "node3" in line])
            self.assertFalse([line for line in daemons[2].log() if "(" in line])

    def test_a_relay_joins_two_networks(self):
        for node in (1, 2):
            rule = ("to", self.cluster.address(3 - node), "ipproto", "udp", "unreachable")
            self.cluster.run(node, "ip", "rule", "add", *rule)
            self.addCleanup(self.cluster.run, node, "ip", "rule", "del", *rule)
        with tempfile.TemporaryDirectory() as directory:
            over = Overlay(self, self.cluster, 3, FI_CLUSTER_KEY_FILE=overlay.write_key(os.path.join(directory, "key")),
                           FI_CLUSTER_RELAY=lambda node: "yes" if node == 3 else "no", FI_CLUSTER_RELAYS=self.cluster.address(3))
            self.assertEqual(over.ping(1, ipv4(2)), 3)
            Stream(over, 1, 2, ipv4(2), 20).finish()


class Refused(unittest.TestCase):
    """Where the interface cannot be made, one line says why and what to do."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared(2)

    def said(self, *before, options=("--nodes", "node1,node2"), address="10.9.0.1/24", status=1):
        words = self.cluster.command(1, *before, Options.program, "--address", address, *options)
        ended = subprocess.run(words, env=virtual_nodes.of_provider(Options.provider), capture_output=True, text=True,
                               timeout=overlay.SECONDS_MAX, check=False)
        self.assertEqual(ended.returncode, status, ended.stderr)
        lines = [line for line in ended.stderr.splitlines() if line.startswith("cluster-ip: ")]
        self.assertEqual(len(lines), 1, ended.stderr)
        return lines[0]

    def test_without_the_capability(self):
        line = self.said("setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin")
        self.assertIn("may not make interfaces (it needs CAP_NET_ADMIN: run it as root; in a container: --cap-add NET_ADMIN)", line)

    def test_without_the_device(self):
        line = self.said("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh")
        self.assertIn("there are no TUN devices here (modprobe tun; in a container: --device /dev/net/tun)", line)

    def test_device_of_others(self):
        mount = 'mount -t tmpfs none /dev/net && mknod -m 600 /dev/net/tun c 10 200 && exec setpriv --reuid 65534 --clear-groups "$@"'
        line = self.said("unshare", "--mount", "sh", "-c", mount, "sh")
        self.assertIn("may not open TUN devices (run it as root; in a container: --device /dev/net/tun)", line)

    def test_a_second_daemon(self):
        first = Daemon(self, self.cluster, 1, (1, 2))
        first.await_line("cluster0 is up")
        self.assertIn("the interface exists already (another cluster-ip runs here? --interface chooses another name): cluster0", self.said())
        self.assertIn("another program uses the port: --port chooses another",
                      self.said(options=("--nodes", "node1,node2", "--interface", "other")))

    def test_wrong_words(self):
        for options, address, status, line in (
                (("--nodes", "node2"), "10.9.0.1/24", 1, "this node is not in the list of nodes"),
                (("--nodes", "node1,nowhere.invalid"), "10.9.0.1/24", 1, "the node 'nowhere.invalid' has no address"),
                (("--nodes", "node1"), "10.9.0.1", 1, "'10.9.0.1' needs a prefix from /1 to /32"),
                (("--nodes", "node1"), "node1/24", 1, "'node1/24' is no address with a prefix, such as 10.9.0.1/24 or fd09::1/64"),
                (("--nodes", "node1"), "10.9.0.1/24,10.9.0.2/24", 1, "one address of IPv4 and one of IPv6"),
                (("--agent",), "10.9.0.1/24", 1, "no agent runs on this node"),
                ((), "10.9.0.1/24", 2, "name the nodes with --nodes, or give --agent"),
                (("--nodes", "node1", "--mtu", "70000"), "10.9.0.1/24", 2, "--mtu")):
            with self.subTest(options=options, address=address):
                self.assertIn(line, self.said(options=options, address=address, status=status))


class Rails(unittest.TestCase):
    """Two rails of 1 Gbit/s: a stream goes on when one of them is cut."""

    def test_a_cut_rail_costs_less_than_a_second(self):
        cluster = virtual_nodes.make(2, "--rails", "2", "--rate", "1gbit", suffix="-ip-rails")
        self.addCleanup(cluster.down)
        over = Overlay(self, cluster, 2)
        for rail in (1, 0):
            for how, back in ((("nomaster",), ("master", f"rail{rail}")), (("down",), ("up",))):
                with self.subTest(rail=rail, how=how[0]):
                    stream = Stream(over, 1, 2, ipv4(2), MEGABYTES)
                    time.sleep(0.5)
                    cluster.run("switch", "ip", "link", "set", f"n2r{rail}", *how)
                    seconds, gap = stream.finish()
                    print(f"rail {rail}, {how[0]}: {seconds:.2f} s, longest gap {gap * 1000:.0f} ms", flush=True)
                    self.assertLess(gap, GAP_SECONDS_MAX)
                    cluster.run("switch", "ip", "link", "set", f"n2r{rail}", *back)
                    time.sleep(1)


class Outage(unittest.TestCase):
    """The Ethernet is away for longer than the provider waits: what was under way is lost, and everything goes on afterwards."""

    def test_traffic_goes_on_afterwards(self):
        cluster = virtual_nodes.make(2, suffix="-ip-outage")
        self.addCleanup(cluster.down)
        over = Overlay(self, cluster, 2, FI_CLUSTER_PEER_TIMEOUT="500", FI_CLUSTER_OUTAGE="0")
        stream = Stream(over, 1, 2, ipv4(2), MEGABYTES * 4)
        cluster.run("switch", "ip", "link", "set", "n2r0", "down")
        over.daemons[1].await_line("node2", "is down: ")
        cluster.run("switch", "ip", "link", "set", "n2r0", "up")
        over.daemons[1].await_line("node2", "is down: ")
        stream.finish()
        self.assertEqual(over.ping(2, ipv6(1)), 3)
        counts = over.daemons[1].stop()
        self.assertGreater(counts["failed"], 0, "packets were lost, and numbers are missing")


class Agents(unittest.TestCase):
    """The nodes are those that the agents know, also such as come later."""

    def test_nodes_of_the_agents(self):
        cluster = virtual_nodes.make(3, suffix="-ip-agents")
        self.addCleanup(cluster.down)

        def start_agent(node):
            result = virtual_nodes.vcluster("agents", "--name", cluster.name, "--start", f"node{node}", capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr)

        start_agent(1)
        start_agent(2)
        daemons = {node: Daemon(self, cluster, node, (), "--agent") for node in (1, 2)}
        daemons[1].knows(2)
        start_agent(3)
        daemons[3] = Daemon(self, cluster, 3, (), "--agent")
        for node in (1, 2):
            daemons[node].knows(3)
            daemons[3].knows(node)
        cluster.run(1, "ping", "-c", "3", "-i", "0.1", ipv6(3))


if __name__ == "__main__":
    unittest.main(argv=overlay.parse(__doc__, "ping", "setpriv"), verbosity=2)
