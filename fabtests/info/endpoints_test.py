#!/usr/bin/env python3
"""Endpoints of idle applications on two virtual nodes with several rails: what cluster-info reports about them is true."""
import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import endpoint_program
from endpoint_program import ScriptedEndpoint, attempts, connect, query, transfer, virtual_nodes

MESSAGES = 25
ANSWER_SECONDS = 5  # for which cluster-info awaits an answer

# A process with a report of its own making, as base/report.h has it.
FORGER = """
import array, fcntl, os, socket, struct
text = b"[endpoint\\n=endpoint a\\n[endpoint\\n=endpoint b\\n[counters\\n#bytes_sent 1\\n[counters\\n#bytes_sent 2\\n"
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind("\\0cluster-info-1/forged")
listener.listen()
print("ready", flush=True)
while True:
    asker = listener.accept()[0]
    memory = os.memfd_create("report", os.MFD_ALLOW_SEALING)
    os.write(memory, text)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    asker.sendmsg([struct.pack("QQ", 0x6f666e692d6c6c63, len(text))],
                  [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
    os.close(memory)
"""

# A user who wants to hide the endpoints of others: listens under many names, answers with long reports or not at all.
HOSTILE = """
import array, contextlib, fcntl, os, resource, socket, struct, sys
names, bytes_each = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (names + 100, names + 100))
open("/proc/self/comm", "w").write("\\x1b[2J")
os.setgid(65534)
os.setuid(65534)
listeners = []
for number in range(names):
    listeners.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listeners[-1].bind(f"\\0cluster-info-1/\\x1b[2J{number}")
    listeners[-1].listen(4096)
head = b"[endpoint\\n=endpoint a\\n[counters\\n"
text = head + b"#a 1\\n" * ((bytes_each - len(head)) // 5)
print("ready", flush=True)
while True:
    for listener in listeners:
        asker = listener.accept()[0]
        memory = os.memfd_create("report", os.MFD_ALLOW_SEALING)
        os.write(memory, text)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        if not bytes_each:
            sys.stdin.read()
        with contextlib.suppress(OSError):
            asker.sendmsg([struct.pack("QQ", 0x6f666e692d6c6c63, len(text))],
                          [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
        os.close(memory)
"""

# Acts as the launcher of a rank: its parent, with a TCP connection to a launcher on another node, over which it talks.
LAUNCHER = """
import socket, subprocess, sys, threading, time
open("/proc/self/comm", "w").write("orted")
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def speak():
    while True:
        connection.sendall(b"alive")
        time.sleep(0.05)
threading.Thread(target=speak, daemon=True).start()
sys.exit(subprocess.call(sys.argv[3:]))
"""


class Endpoints(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, "--rails", "2")

    def start_endpoint(self, number, **settings):
        made = ScriptedEndpoint(self.cluster.command(number), **settings)
        self.addCleanup(made.close)
        made.address = text_of(made.do("name"))
        return made

    def processes(self, number, *words):
        return query("--all", *words, before=self.cluster.command(number))["processes"]

    def endpoint(self, number, scripted):
        """What cluster-info reports about the endpoint, and the id of its process."""
        found = [(process, endpoint) for process in self.processes(number) for endpoint in process["endpoints"]
                 if endpoint["endpoint"]["endpoint"] == scripted.address]
        self.assertEqual(len(found), 1, scripted.address)
        self.assertEqual(found[0][0]["command"], "scripted_ep")
        return found[0][1], found[0][0]["pid"]

    def peer(self, endpoint, scripted):
        return next(peer for peer in endpoint["peers"] if peer["peer"] == scripted.address)

    def test_two_nodes_and_two_links(self):
        for link, rail in (("packet", "eth0"), ("udp", "eth1")):
            with self.subTest(link):
                one, other = (self.start_endpoint(number, FI_CLUSTER_LINK=link, FI_CLUSTER_IFACE=rail) for number in (1, 2))
                connect(one, other)
                transfer(one, other, MESSAGES)
                seen, _ = self.endpoint(1, one)
                self.assertEqual((seen["endpoint"]["link"], seen["endpoint"]["interface"]), (link, rail))
                self.assertEqual(seen["endpoint"]["frame_max_bytes"], 1472)
                options = {entry["option"]: entry for entry in seen["options"]}
                self.assertEqual((options["FI_CLUSTER_LINK"]["value"], options["FI_CLUSTER_LINK"]["from"]),
                                 (link, "environment"))
                self.assertEqual(seen["counters"]["bytes_sent"], 8 * MESSAGES)
                peer = self.peer(seen, other)
                self.assertEqual((peer["path"], peer["lost_frames"]), (link, 0))
                way = peer["rails"][0]
                self.assertEqual((way["interface"], way["to"], way["up"]), (rail, other.address, True))
                self.assertIn("no shared memory: no process on this node offers it at this address", peer["why"])
                self.assertGreater(peer["sent_frames"], 0)
                self.assertEqual(peer["sent_frames"], seen["counters"]["frames_sent"])
                self.assertLess(0, way["rtt_ns"])
                self.assertLessEqual(way["in_flight_frames"], way["window_frames"])
                self.assertGreater(peer["state_bytes"], 1000)
                self.assertLess(peer["silent_ns"], 60e9)
                back = self.peer(self.endpoint(2, other)[0], one)
                self.assertEqual(back["path"], link)
                self.assertIn("the peer opened the session", back["why"])
                # Reading a report changes no counter.
                again, _ = self.endpoint(1, one)
                self.assertEqual(again["counters"]["bytes_sent"], 8 * MESSAGES)
                self.assertGreater(self.peer(again, other)["silent_ns"], peer["silent_ns"])

    def test_one_node(self):
        one, other = self.start_endpoint(1), self.start_endpoint(1)
        connect(one, other)
        transfer(one, other, MESSAGES)
        peer = self.peer(self.endpoint(1, one)[0], other)
        self.assertEqual((peer["path"], peer["why"]), ("shm", "the peer is on this node"))
        self.assertNotIn("rails", peer)
        seen, _ = self.endpoint(1, other)
        self.assertEqual(seen["counters"]["shm_received"], MESSAGES)
        self.assertEqual(self.processes(2), [], "another node's are not seen")

    def test_by_number_and_stopped(self):
        one, other = self.start_endpoint(1), self.start_endpoint(1)
        _, pid = self.endpoint(1, one)
        self.assertEqual([process["pid"] for process in self.processes(1, "--pid", str(pid))], [pid])
        _, stopped = self.endpoint(1, other)
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        try:
            said = self.processes(1, "--pid", str(stopped))[0]["endpoints"][0]
        finally:
            os.kill(stopped, signal.SIGCONT)
        self.assertEqual(said["trouble"], "it does not answer: the process is stopped")
        self.assertLess(time.monotonic() - began, ANSWER_SECONDS, "it waits for no answer that cannot come")

    def test_processes_that_have_no_endpoint(self):
        for word, status, said in (("abc", 2, "'abc' is not a process id"), ("0", 2, "'0' is not a process id"),
                                   ("999999999", 1, "process 999999999: no such process"),
                                   (str(os.getpid()), 1, "has no endpoint")):
            done = endpoint_program.run("--pid", word, "--why")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_peer_that_has_gone(self):
        one, other = (self.start_endpoint(1, FI_CLUSTER_END_ABANDONED="no") for _ in range(2))
        connect(one, other)
        transfer(one, other, 1)
        other.process.kill()
        one.begin("receive 1")  # nothing arrives, but it makes calls
        for _ in attempts():
            peer = self.peer(self.endpoint(1, one)[0], other)
            if peer["path"] == "none":
                break
        self.assertEqual((peer["path"], peer["why"]), ("none", "lost: peer's process has ended"))
        one.process.kill()

    def ip(self, number, *words):
        self.cluster.run(number, "ip", *words)

    def test_different_mtus(self):
        self.ip(2, "link", "set", "eth1", "mtu", "1300")
        self.addCleanup(self.ip, 2, "link", "set", "eth1", "mtu", "1500")
        for link in ("packet", "udp"):
            with self.subTest(link):
                settings = {"FI_CLUSTER_LINK": link, "FI_CLUSTER_IFACE": "eth1", "FI_LOG_LEVEL": "warn"}
                one, other = (self.start_endpoint(number, **settings) for number in (1, 2))
                connect(one, other)
                for size in (8, 100_000):
                    transfer(one, other, 3, size)
                    transfer(other, one, 3, size)
                self.assertEqual(self.peer(self.endpoint(1, one)[0], other)["frame_max_bytes"], 1272)
                for scripted in (one, other):
                    lines = [line for line in scripted.log().splitlines() if "has MTU" in line]
                    self.assertEqual(len(lines), 1, lines)
                    self.assertTrue("1300" in lines[0] and "1500" in lines[0], lines[0])

    def test_ipv6_only(self):
        for number in (1, 2):
            shown = self.cluster.run(number, "ip", "-json", "-4", "addr", "show", "eth1")
            old = json.loads(shown)[0]["addr_info"][0]
            self.ip(number, "-4", "addr", "flush", "dev", "eth1")
            self.addCleanup(self.ip, number, "addr", "add", f"{old['local']}/{old['prefixlen']}", "dev", "eth1")
            self.ip(number, "-6", "addr", "add", f"fd00:77::{number}/64", "dev", "eth1", "nodad")
            self.addCleanup(self.ip, number, "-6", "addr", "del", f"fd00:77::{number}/64", "dev", "eth1")
        for link in ("packet", "udp"):
            with self.subTest(link):
                one, other = (self.start_endpoint(number, FI_CLUSTER_LINK=link, FI_CLUSTER_IFACE="eth1") for number in (1, 2))
                self.assertTrue(one.address.startswith("[fd00:77::1]:"), one.address)
                connect(one, other)
                transfer(one, other, 3, 100_000)
                peer = self.peer(self.endpoint(1, one)[0], other)
                self.assertEqual((peer["path"], peer["frame_max_bytes"]), (link, 1452))

    def test_other_users_get_no_report(self):
        one = self.start_endpoint(1)
        other_user = [*self.cluster.command(1), "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        said = query("--all", before=other_user)
        self.assertEqual((said["processes"], said["foreign_endpoints"]), ([], 1))
        self.assertTrue(self.endpoint(1, one), "root still sees it")

    def listener(self, number):
        """Starts a process on a node that reads everything from one connection; returns its port."""
        script = "import socket; s = socket.create_server(('', 0)); print(s.getsockname()[1], flush=True); c = s.accept()[0]\n" \
                 "while c.recv(100): pass"
        process = subprocess.Popen(self.cluster.command(number, sys.executable, "-c", script), stdout=subprocess.PIPE, text=True)
        for clean in (process.stdout.close, process.wait, process.kill):
            self.addCleanup(clean)
        return process.stdout.readline().strip()

    def why(self, number):
        return endpoint_program.run("--why", before=self.cluster.command(number)).stdout

    def test_ranks_that_wait_for_no_peer_may_wait_for_their_launcher(self):
        far = (self.cluster.address(2), self.listener(2))
        one = ScriptedEndpoint(self.cluster.command(1, sys.executable, "-c", LAUNCHER, *far))
        self.addCleanup(one.close)
        one.address = text_of(one.do("name"))
        text = self.why(1)
        self.assertRegex(text, r"(?m)^No rank of orted \(process \d+\) waits for a peer: .* wait for orted\.$")
        self.addCleanup(self.cluster.run, "switch", "ip", "link", "set", "n2r0", "up")
        self.cluster.run("switch", "ip", "link", "set", "n2r0", "down")
        for _ in attempts():
            text = self.why(1)
            if "nothing answers" in text:
                break
        self.assertRegex(text, rf"nothing answers what orted sends over TCP from {re.escape(self.cluster.address(1))}:\d+ "
                               rf"to {re.escape(':'.join(far))} \(\d+ retransmissions\): is this rail cut\?")
        self.cluster.run("switch", "ip", "link", "set", "n2r0", "up")
        other = self.start_endpoint(1)
        connect(one, other)
        one.begin("receive 1")
        for _ in attempts():
            text = self.why(1)
            if "No rank of" not in text:
                break
        self.assertNotIn("No rank of", text, "one that waits for a peer")
        other.do("send 1 8")
        one.end()

    def test_a_process_that_says_everything_twice_hides_no_other(self):
        one = self.start_endpoint(1)
        forger = subprocess.Popen(self.cluster.command(1, sys.executable, "-c", FORGER), stdout=subprocess.PIPE, text=True)
        for clean in (forger.stdout.close, forger.wait, forger.kill):  # the last one first
            self.addCleanup(clean)
        self.assertEqual(forger.stdout.readline(), "ready\n")
        self.assertTrue(self.endpoint(1, one))
        found = [process["endpoints"] for process in self.processes(1) if process["pid"] == forger.pid]
        self.assertEqual(found, [[{"endpoint": {"endpoint": "a"}, "counters": {"bytes_sent": 1}}]])

    def hostile(self, names, bytes_each):
        """Another user's process in node 1; returns its id."""
        process = subprocess.Popen(self.cluster.command(1, sys.executable, "-c", HOSTILE, str(names), str(bytes_each)),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for clean in (process.stdin.close, process.stdout.close, process.wait, process.kill):  # the last one first
            self.addCleanup(clean)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process.pid

    def test_a_silent_process_of_another_user_holds_up_nobody(self):
        one = self.start_endpoint(1)
        silent = self.hostile(1, 0)
        began = time.monotonic()
        found = {process["pid"]: process["endpoints"] for process in self.processes(1)}
        self.assertLess(time.monotonic() - began, 3, "agents ask for 3 seconds")
        self.assertIn("does not answer", found[silent][0]["trouble"])
        self.assertTrue(self.endpoint(1, one))

    def test_long_reports_of_another_user_cost_little_and_hide_nobody(self):
        one = self.start_endpoint(1)
        hostile = self.hostile(8, 3_000_000)
        with tempfile.TemporaryFile("w+") as said:
            words = self.cluster.command(1, os.path.join(endpoint_program.Options.build, "util", "info", "cluster-info"), "--all", "--json")
            process = subprocess.Popen(words, stdout=said, env=endpoint_program.environment())
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read()
        self.assertEqual(process.returncode, 0)
        self.assertLess(used.ru_maxrss, 160 << 10, "KB")
        self.assertLess(len(text), 16 << 20)
        endpoints = {each["pid"]: each["endpoints"] for each in json.loads(text)["processes"]}[hostile]
        self.assertEqual(sum("too long" in each.get("trouble", "") for each in endpoints), 7)
        self.assertTrue(self.endpoint(1, one))

    def test_many_endpoints_of_another_user_hide_nobody(self):
        one = self.start_endpoint(1)
        self.hostile(1100, 100)
        said = query("--all", before=self.cluster.command(1))
        self.assertEqual(said["left_out_endpoints"], 1100 - 512)
        self.assertTrue(self.endpoint(1, one))

    def test_names_of_others_give_no_orders_to_the_terminal(self):
        self.hostile(1, 100)
        for words in (("--all",), ("--all", "--json"), ("--why",)):
            said = endpoint_program.run(*words, before=self.cluster.command(1)).stdout
            self.assertIn("?[2J", said)
            self.assertNotIn("\x1b", said, words)

    def test_text_is_readable(self):
        one, other, third = self.start_endpoint(1), self.start_endpoint(2), self.start_endpoint(1)
        for peer in (other, third):
            connect(one, peer)
            transfer(one, peer, MESSAGES)
        text = endpoint_program.run("--all", before=self.cluster.command(1)).stdout
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])
        for word in (other.address, third.address, "why packet: no shared memory", "why shm: the peer is on this node"):
            self.assertIn(word, text)
        self.assertEqual(sum(" eth0 " in line for line in text.splitlines()), 1, "one rail to one peer is one line")


def text_of(digits):
    """The address in a sockaddr_in or sockaddr_in6, as text."""
    raw = bytes.fromhex(digits)
    port = int.from_bytes(raw[2:4], "big")
    if len(raw) == 16:
        return f"{ipaddress.ip_address(raw[4:8])}:{port}"
    return f"[{ipaddress.ip_address(raw[8:24])}]:{port}"


if __name__ == "__main__":
    unittest.main(argv=endpoint_program.parse(__doc__), verbosity=2)
