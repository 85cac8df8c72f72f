"""The first warning of a fault names the cause and the remedy, appears once, and is explained in the manual.

    warnings_test.py --build BUILD --program life_peer [test...]

Each test makes one fault over virtual nodes. The first line that the provider writes at FI_LOG_LEVEL=warn has to begin as
a heading of man/fi_cluster_messages.7 does, which has the same words with other names and numbers.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "documents"))
import log_lines  # noqa: E402
from life_process import Life, Process, acquaint, exchange, run_tests, virtual_nodes  # noqa: E402
WARNING = re.compile(r":cluster:[^<]*<warn> ?(?:cluster\(\)[^<]*<warn> )?(.*)")


def warnings(log):
    return [match.group(1).strip() for match in map(WARNING.search, log.splitlines()) if match]


class Warnings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, "--rails", "2", suffix="-warnings")
        cls.addClassCleanup(cls.cluster.down)
        cls.manual = [log_lines.pattern_of(heading) for heading in log_lines.headings()]

    def start(self, node=1, before=(), port=None, **settings):
        settings.setdefault("FI_CLUSTER_RAILS", "none")
        process = Process([*self.cluster.command(node), *before], port, FI_LOG_LEVEL="warn", **settings)
        self.addCleanup(process.close)
        return process

    def refused(self, node=1, before=(), **settings):
        """The output of a process that gets no endpoint."""
        environment = {**os.environ, **virtual_nodes.of_provider(Life.plugin, FI_LOG_LEVEL="warn", **settings)}
        done = subprocess.run([*self.cluster.command(node), *before, Life.program], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        return done.stderr

    def says(self, log, *words):
        """The first warning has these words and is one of the manual's; it comes once."""
        said = warnings(log)
        self.assertTrue(said, f"no warning: {log}")
        for word in words:
            self.assertIn(word, said[0])
        self.assertTrue(any(heading.match(said[0]) for heading in self.manual), f"not in the manual: {said[0]}")
        self.assertEqual(said.count(said[0]), 1, said)

    def says_soon(self, process, *words):
        # The log is no event of the process: it is looked at again and again.
        self.assertTrue(any(process.until(lambda: warnings(process.log()), 0.05) for _ in range(1000)), "no warning")
        self.says(process.log(), *words)

    def test_01_option(self):
        self.says(self.refused(FI_CLUSTER_PEER_TIMEOUT="7"), "FI_CLUSTER_PEER_TIMEOUT=7", "allowed: 100 to 3600000 ms")

    def test_02_interface(self):
        self.says(self.refused(FI_CLUSTER_IFACE="eth7"), "FI_CLUSTER_IFACE=eth7")

    def test_03_no_interface_at_all(self):
        self.says(self.refused(before=("unshare", "--net")), "no network interface is up")

    def test_04_raw_sockets(self):
        before = ("setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
        self.says(self.refused(before=before, FI_CLUSTER_LINK="packet"), "CAP_NET_RAW", "FI_CLUSTER_LINK=udp")

    def test_05_port_in_use(self):
        self.start(port=20021)
        with self.assertRaises(RuntimeError) as failure:
            self.start(port=20021)
        self.says(str(failure.exception), "Address already in use")

    def test_06_rail(self):
        self.says(self.start(FI_CLUSTER_RAILS="eth7").log(), "FI_CLUSTER_RAILS names eth7")

    def test_07_key_file_missing(self):
        self.says(self.refused(FI_CLUSTER_KEY_FILE="/nowhere/key"), "/nowhere/key", "openssl rand -hex 32")

    def test_08_key_file_of_others(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("00" * 32)
            file.flush()
            os.chmod(file.name, 0o644)
            self.says(self.refused(FI_CLUSTER_KEY_FILE=file.name), "chmod 600")

    def test_09_key_demanded(self):
        self.says(self.refused(FI_CLUSTER_SECURITY="encrypt"), "FI_CLUSTER_SECURITY=encrypt", "FI_CLUSTER_KEY_FILE")

    def test_10_no_descriptors(self):
        one, other = self.start(), self.start(before=("prlimit", "--nofile=24:24"))
        many = [self.start() for _ in range(12)]
        for each in many:
            each.post("send", 8, each.peer(other.name))
        self.says_soon(other, "ulimit -Hn")
        self.assertTrue(one)

    def test_11_no_threads(self):
        before = ("setpriv", "--reuid", "54321", "--clear-groups", "prlimit", "--nproc=1:1")
        self.says(self.refused(before=before), "thread")

    def test_12_other_user(self):
        one = self.start()
        other = self.start(before=("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"))
        one.post("any", 8, 0)
        operation = other.post("send", 8, other.peer(one.name))
        self.assertEqual(other.end(operation)[0], 0, "by the network")

    def test_13_local_death(self):
        one, other = self.start(), self.start()
        acquaint(one, other)
        other.kill()
        self.says_soon(one, "peer's process has ended", "the peer's own output")

    def test_14_remote_death(self):
        one, other = self.start(), self.start(2)
        handle, _ = acquaint(one, other)
        one.post("recv", 8, handle)
        other.kill()
        self.says_soon(one, "is lost")

    def test_15_node_gone(self):
        one, other = self.start(FI_CLUSTER_PEER_TIMEOUT="300", FI_CLUSTER_OUTAGE="0"), self.start(2)
        handle, _ = acquaint(one, other)
        self.cluster.run(2, "ip", "link", "set", "eth0", "down")
        self.addCleanup(self.cluster.run, 2, "ip", "link", "set", "eth0", "up")
        self.assertIn("peer unreachable", one.end(one.post("send", 8, handle))[2])
        self.says(one.log(), "peer unreachable", "node off", "cable", "firewall")

    def test_15_outage(self):
        one, other = self.start(FI_CLUSTER_PEER_TIMEOUT="300", FI_CLUSTER_OUTAGE="500"), self.start(2)
        handle, _ = acquaint(one, other)
        self.cluster.run(2, "ip", "link", "set", "eth0", "down")
        self.addCleanup(self.cluster.run, 2, "ip", "link", "set", "eth0", "up")
        one.end(one.post("send", 8, handle))
        self.says(one.log(), "no other node answers (1 silent)", "for up to 0.5 s (FI_CLUSTER_OUTAGE)")
        self.assertRegex(warnings(one.log())[1], "this outage: 0.5 s")

    def test_15_no_carrier(self):
        one, other = self.start(FI_CLUSTER_PEER_TIMEOUT="2000"), self.start(2)
        handle, _ = acquaint(one, other)
        self.cluster.run("switch", "ip", "link", "set", "n1r0", "down")
        self.addCleanup(self.cluster.run, "switch", "ip", "link", "set", "n1r0", "up")
        sent = one.post("send", 8, handle)
        self.says_soon(one, "this node is cut off: no interface", "carrier")
        self.cluster.run("switch", "ip", "link", "set", "n1r0", "up")
        self.assertEqual(one.end(sent)[0], 0)
        self.assertTrue(any(one.until(lambda: len(warnings(one.log())) > 1, 0.05) for _ in range(100)), one.log())
        self.assertRegex(warnings(one.log())[1], "the outage ended after")

    def test_16_closed_too_early(self):
        one, other = self.start(), self.start()
        handle, _ = acquaint(one, other)
        one.post("send", 4 << 20, handle)
        other.do("quit")
        self.says_soon(one, "has closed before operations with it were complete")

    def test_17_rail_cut(self):
        one, other = (self.start(node, FI_CLUSTER_RAILS="auto") for node in (1, 2))
        handle, back = acquaint(one, other)
        for _ in range(30):
            exchange(one, other, handle, 100_000)
        self.cluster.run(2, "ip", "link", "set", "eth1", "down")
        self.addCleanup(self.cluster.run, 2, "ip", "link", "set", "eth1", "up")
        while not warnings(one.log()) and not warnings(other.log()):
            exchange(one, other, handle, 100_000)
            exchange(other, one, back, 100_000)
        self.says(one.log() if warnings(one.log()) else other.log(), "from ", " (eth1) to ", "has failed")

    def test_18_mtu(self):
        self.cluster.run(2, "ip", "link", "set", "eth0", "mtu", "1300")
        self.addCleanup(self.cluster.run, 2, "ip", "link", "set", "eth0", "mtu", "1500")
        one, other = self.start(), self.start(2)
        acquaint(one, other)
        self.says(one.log(), "has MTU", "ip link set IFACE mtu BYTES")

    def test_19_one_side_has_a_key(self):
        key = "ab" * 32
        one, other = self.start(FI_CLUSTER_PEER_TIMEOUT="1000"), self.start(2, FI_CLUSTER_KEY=key)
        other.post("send", 8, other.peer(one.name))
        self.says_soon(other, "FI_CLUSTER_KEY_FILE")

    def test_20_stuck(self):
        one, other = self.start(FI_CLUSTER_PEER_TIMEOUT="2000", FI_CLUSTER_STUCK_TIMEOUT="2500"), self.start(2)
        handle, _ = acquaint(one, other)
        other.signal(signal.SIGSTOP)
        one.post("send", 8, handle)
        self.says_soon(one, "its endpoint does not answer", "FI_CLUSTER_STUCK_TIMEOUT")

    def test_21_silent(self):
        one, other = self.start(), self.start(2)
        handle, _ = acquaint(one, other)
        other.signal(signal.SIGSTOP)
        one.post("send", 8, handle)
        self.says_soon(one, "has not answered for 10 s", "the process is stopped, or a firewall", "FI_CLUSTER_STUCK_TIMEOUT")

    def test_22_no_such_option(self):
        self.says(self.start(FI_CLUSTER_PEER_TIMOUT="1000").log(), "no such option", "FI_CLUSTER_PEER_TIMEOUT")

    def test_23_too_few_descriptors_for_an_endpoint(self):
        """Whatever lacks a descriptor: the interfaces, the port, or something that an endpoint can do without."""
        complete = 0
        for limit in (8, 16, 24, 64):
            log = self.refused(before=("prlimit", f"--nofile={limit}:{limit}"), FI_CLUSTER_RAILS="none")
            if ":cluster:" in log and warnings(log):
                self.says(log, "ulimit -Hn")
            complete += not warnings(log)
        self.assertEqual(complete, 1, "64 are enough")

    def test_24_no_port_is_free(self):
        setting = "net.ipv4.ip_local_port_range"
        before = self.cluster.run(1, "sysctl", "-n", setting).strip()
        self.cluster.run(1, "sysctl", "-w", f"{setting}=40000 40003")
        self.addCleanup(self.cluster.run, 1, "sysctl", "-w", f"{setting}={before}")
        for _ in range(4):
            self.start()
        with self.assertRaises(RuntimeError) as failure:
            self.start()
        self.says(str(failure.exception), "no port is free", setting)

    def test_25_no_rdma_library(self):
        self.says(self.refused(FI_CLUSTER_LINK="verbs", FI_CLUSTER_TEST_VERBS="no-such-library.so"),
                  "FI_CLUSTER_LINK=verbs is not possible", "no-such-library.so cannot be loaded")

    def test_26_rdma_device_lost(self):
        fake = os.path.join(Life.plugin, "test", "verbs", "libfake_ibverbs.so")
        if not os.path.exists(fake):
            self.skipTest("built without libibverbs-dev")
        verbs = {"FI_CLUSTER_LINK": "verbs", "FI_CLUSTER_TEST_VERBS": fake}
        one, other = self.start(**verbs, FAKE_VERBS_FAULT="remove@20"), self.start(2, **verbs)
        handle, _ = acquaint(one, other)
        for _ in range(60):
            exchange(one, other, handle)
        self.says_soon(one, "is no longer used (the device has failed or was removed)")


if __name__ == "__main__":
    run_tests(__doc__, "setpriv", "prlimit", "unshare")
