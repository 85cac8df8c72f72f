#!/usr/bin/env python3
"""Frames travel between queue pairs, and a device that goes away costs no message.

    verbs_test.py --build BUILD --program life_peer [--devices ETH0 ETH1] [test...]

Two processes exchange checked messages: every byte follows from the seed of its message. Without --devices they are on two
virtual nodes, over a library that stands in for libibverbs (prov/cluster/test/verbs). With --devices they are on this node, each
on the interface of a real RDMA device, such as one of `rdma link add ... type rxe`. The tests then delete these devices.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "life"))
from life_process import LATE, SECONDS_MAX, Life, Process, acquaint, lived, run_tests, virtual_nodes  # noqa: E402

SIZE_MAX = 2000000
LONG = 1500000  # bytes of a message that a device reads
VALIDATED_MAX = 10  # seconds until the path has been validated
GIVEN_BACK_MAX = 10  # seconds until an endpoint gives a removed device back
BACK_MAX = 10  # seconds until frames take a device again that has come back
STILL_MAX = 1.0  # seconds without a message when a device is lost


class Verbs(unittest.TestCase):
    devices = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = None
        if cls.devices is None:
            cls.cluster = virtual_nodes.make(2, suffix="-verbs")
            cls.addClassCleanup(cls.cluster.down)

    def start(self, side, **settings):
        settings = {"FI_CLUSTER_LINK": "verbs", "FI_CLUSTER_RAILS": "none", "FI_LOG_LEVEL": "info",
                    "FI_CLUSTER_SHM": "no", **settings}
        before = []
        if self.devices is None:
            settings.setdefault("FI_CLUSTER_TEST_VERBS", os.path.join(Life.plugin, "test", "verbs", "libfake_ibverbs.so"))
            before = self.cluster.command(side)
        else:
            settings["FI_CLUSTER_IFACE"] = self.devices[side - 1]
        process = Process(before, **settings)
        self.addCleanup(process.close)
        return process

    def pair(self, **settings_of_first):
        one, other = self.start(1, **settings_of_first), self.start(2)
        to_other, to_one = acquaint(one, other)
        for process in (one, other):
            process.do(f"keep 16 {SIZE_MAX}")
        return one, other, to_other, to_one

    def stream(self, one, other, handle, seeds, size, inject=lambda seed: None):
        """Sends checked messages one after the other; returns the longest time without an arrival."""
        other.got.clear()
        last, longest = lived(), 0
        for seed in seeds:
            inject(seed)
            one.do(f"say s{seed} {size} {handle} {seed}")
            if not other.until(lambda seed=seed: (seed, size) in other.got):
                self.fail(f"{seed} never comes; {self.state(one, other)}")
            now = lived()
            last, longest = now, max(longest, now - last)
        for seed in seeds:
            self.assertEqual(one.end(f"s{seed}")[0], 0, one.log())
        return longest

    def await_device_reads(self, one, other, handle, seed=2000):
        """Sends long messages until a device has read one of them."""
        deadline = lived() + VALIDATED_MAX * LATE
        while "reads its long messages (queue pair" not in other.log():
            self.assertLess(lived(), deadline, f"no queue pairs are connected; {other.log()}")
            self.stream(one, other, handle, [seed], LONG)
            seed += 1
        self.stream(one, other, handle, [seed], LONG)

    @staticmethod
    def state(*processes):
        """What the provider of each process has logged, and what cluster-info says about it."""
        program, text = os.path.join(Life.build, "util", "info", "cluster-info"), []
        for process in processes:
            ended = process.process.poll()
            text.append(f"process {process.pid}" + (f" has ended with {ended}" if ended is not None else ""))
            text += [line for line in process.log().splitlines() if ":cluster:core:cluster()" in line]
            for words in ([], ["--why"]):
                if ended is None and os.path.exists(program):
                    text.append(subprocess.run([program, *words, "--pid", str(process.pid)], capture_output=True, text=True,
                                               check=False, timeout=SECONDS_MAX).stdout)
        return "\n".join(text)

    def test_a_device_reads_long_messages(self):
        one, other, to_other, _ = self.pair()
        self.await_device_reads(one, other, to_other)
        self.stream(one, other, to_other, list(range(3000, 3010)), LONG)
        if not self.devices:  # soft-RoCE loses packets, and sometimes too many
            self.assertNotIn("travel in frames again", one.log() + other.log())

    def test_a_queue_pair_that_breaks_costs_no_message(self):
        if self.devices:
            self.skipTest("only the library that stands in for libibverbs breaks queue pairs")
        for fault in ("read_error", "read_half", "read_silence", "read_remove", "read_refused", "read_lie"):
            soft = {"FAKE_VERBS_SOFT": "1"} if fault == "read_lie" else {}
            one, other = self.start(1), self.start(2, FAKE_VERBS_FAULT=f"{fault}@5", **soft)
            to_other, _ = acquaint(one, other)
            other.do(f"keep 16 {SIZE_MAX}")
            self.await_device_reads(one, other, to_other)
            longest = self.stream(one, other, to_other, list(range(3000, 3008)), LONG)
            self.assertLess(longest, STILL_MAX * LATE, f"{fault}: {other.log()}")
            self.assertIn("its long messages travel in frames again", other.log(), fault)
            one.close()
            other.close()

    def put_and_get(self, one, other, handle, seeds):
        """Writes checked bytes into the region of the other, and reads them back; returns the longest time of both together."""
        longest = 0
        for seed in seeds:
            begun = lived()
            one.do(f"put p{seed} {LONG} {handle} {seed} 0")
            end = one.end(f"p{seed}")
            if end is None:
                self.fail(f"{seed} never ends; {self.state(one, other)}")
            self.assertEqual(end[0], 0, f"{end}; {one.log()}")
            longest = max(longest, lived() - begun)
        return longest

    def await_device_access(self, one, other, handle):
        """Writes and reads until both sides have connected."""
        deadline, seed = lived() + VALIDATED_MAX * LATE, 2000
        while "reads its long messages (queue pair" not in one.log() or "reads its long messages (queue pair" not in other.log():
            self.assertLess(lived(), deadline, f"no queue pairs are connected; {other.log()}")
            self.put_and_get(one, other, handle, [seed])
            seed += 1

    @staticmethod
    def reader(process):
        """What cluster-info says about the device that reads for the process; None if cluster-info is not built."""
        program = os.path.join(Life.build, "util", "info", "cluster-info")
        if not os.path.exists(program):
            return None
        shown = subprocess.run([program, "--json", "--pid", str(process.pid)], check=True, capture_output=True, text=True).stdout
        return json.loads(shown)["processes"][0]["endpoints"][0]["readers"][0]

    def test_devices_carry_puts_and_gets(self):
        one, other, to_other, _ = self.pair()
        self.await_device_access(one, other, to_other)
        self.put_and_get(one, other, to_other, range(3000, 3010))
        for reader in filter(None, map(self.reader, (one, other))):
            self.assertEqual(reader["queue_pairs"], 1, reader)
            self.assertGreater(reader["misses"], 0, reader)
            self.assertLessEqual(reader["registered_bytes"], reader["registered_bytes_max"])
            if not self.devices and not reader["keeps_nothing_because"]:  # soft-RoCE before Linux 6.5 keeps no memory that a peer reads
                self.assertGreater(reader["registrations"], 0, reader)
        if not self.devices:
            self.assertNotIn("travel in frames again", one.log() + other.log())
        logs = []
        for process in (one, other):
            process.do("quit")
            process.process.wait(SECONDS_MAX)
            logs.append(process.log())
        if not self.devices:
            self.assertRegex(logs[0], r"endpoint .* closed:.* device_gets=1[0-9]\b")
            self.assertRegex(logs[1], r"endpoint .* closed:.* device_puts=1[0-9]\b")

    def test_a_queue_pair_that_breaks_costs_no_put_and_no_get(self):
        if self.devices:
            self.skipTest("only the library that stands in for libibverbs breaks queue pairs")
        for fault in ("read_error", "read_half", "read_silence", "read_remove", "read_refused", "read_lie"):
            soft = {"FAKE_VERBS_SOFT": "1"} if fault == "read_lie" else {}
            broken = {"FAKE_VERBS_FAULT": f"{fault}@5", **soft}
            for writer, target in ((broken, soft), (soft, broken)):
                one, other = self.start(1, **writer), self.start(2, **target)
                to_other, _ = acquaint(one, other)
                self.await_device_access(one, other, to_other)
                longest = self.put_and_get(one, other, to_other, range(3000, 3006))
                self.assertLess(longest, 2 * STILL_MAX * LATE, f"{fault}: {other.log()}")
                self.assertIn("its long messages travel in frames again", one.log() + other.log(), fault)
                one.close()
                other.close()

    def works_by_verbs(self, process):
        """The path between queue pairs has been validated."""
        return " to queue pair " in process.log() and "works" in process.log().split(" to queue pair ", 1)[1].split("\n", 1)[0]

    def await_verbs(self, one, other, handle, works=None, within=VALIDATED_MAX):
        """Sends until a path between queue pairs works."""
        deadline, seed = lived() + within * LATE, 1000
        while not (works or self.works_by_verbs)(one):
            self.assertLess(lived(), deadline, f"no path between queue pairs works; {one.log()}")
            self.stream(one, other, handle, [seed], 64)
            seed += 1

    def test_messages_of_all_sizes(self):
        one, other, to_other, to_one = self.pair()
        self.await_verbs(one, other, to_other)
        for number, size in enumerate((16, 64, 1000, 4000, 20000, 300000, SIZE_MAX)):
            self.stream(one, other, to_other, [10 * number + i for i in range(3)], size)
            self.stream(other, one, to_one, [10 * number + i for i in range(3)], size)

    def test_a_device_is_lost_in_mid_stream_and_comes_back(self):
        gone = {} if self.devices else {"FAKE_VERBS_FAULT": "remove@200", "FAKE_VERBS_ONCE": "1"}
        one, other, to_other, _ = self.pair(**gone)
        self.await_verbs(one, other, to_other)

        def delete(seed):
            if self.devices and seed == 150:
                removals.extend(self.delete(self.devices[0]))
        removals = []
        longest = self.stream(one, other, to_other, list(range(300)), 3000, delete)
        if not self.devices:
            self.assertIn("is no longer used (", one.log())
        print(f"longest time without a message: {longest * 1e3:.0f} ms", file=sys.stderr)
        self.assertLess(longest, STILL_MAX * LATE, one.log())
        self.stream(one, other, to_other, [900], 1000000)
        # The link notices the removal when nothing answers what it sends.
        deadline, seed = lived() + GIVEN_BACK_MAX * LATE, 901
        while removals and "is no longer used (" not in one.log():
            self.assertLess(lived(), deadline, f"the device is still in use; {one.log()}")
            self.stream(one, other, to_other, [seed], 64)
            seed += 1
        if all(self.ends_soon(removal) for _, removal in removals):
            self.add_again(removals)
            removals = []
            begun = lived()
            self.await_verbs(one, other, to_other, self.works_again, BACK_MAX)
            print(f"back on verbs after {lived() - begun:.1f} s", file=sys.stderr)
            self.stream(one, other, to_other, list(range(1000, 1020)), 3000)
        else:
            print("the library's own provider for verbs keeps the removed device open", file=sys.stderr)
        one.close()
        other.close()
        self.add_again(removals)

    @staticmethod
    def works_again(process):
        """A path between queue pairs has been validated since the device was back."""
        log = process.log()
        return "is used again" in log and re.search(" to queue pair .* works", log.split("is used again", 1)[1]) is not None

    @staticmethod
    def ends_soon(removal):
        try:
            return removal.wait(GIVEN_BACK_MAX) == 0
        except subprocess.TimeoutExpired:
            return False

    def add_again(self, removals):
        for name, removal in removals:
            self.assertEqual(removal.wait(SECONDS_MAX * LATE), 0)
            subprocess.run(["rdma", "link", "add", name, "type", "rxe", "netdev", self.devices[0]], check=True)

    def test_with_a_key_frames_take_the_device_and_reads_do_not(self):
        key = tempfile.NamedTemporaryFile("w")  # readable for this user only
        self.addCleanup(key.close)
        key.write("0123456789abcdef0123456789abcdef")
        key.flush()
        for security in ("auth", "encrypt"):
            settings = {"FI_CLUSTER_KEY_FILE": key.name, "FI_CLUSTER_SECURITY": security}
            one, other = self.start(1, **settings), self.start(2, **settings)
            to_other, to_one = acquaint(one, other)
            for process in (one, other):
                process.do(f"keep 16 {SIZE_MAX}")
            self.await_verbs(one, other, to_other)
            for number, size in enumerate((16, 1000, 20000, 300000)):
                self.stream(one, other, to_other, [10 * number + i for i in range(3)], size)
                self.stream(other, one, to_one, [10 * number + i for i in range(3)], size)
            self.assertNotIn("reads its long messages", one.log() + other.log())
            one.close()
            other.close()

    @staticmethod
    def delete(interface):
        """Begins to remove the devices of the interface: soft-RoCE waits until nobody has the device open."""
        links = json.loads(subprocess.run(["rdma", "-j", "link"], check=True, capture_output=True, text=True).stdout)
        return [(link["ifname"], subprocess.Popen(["rdma", "link", "delete", link["ifname"]])) for link in links
                if link["netdev"] == interface]


def more(parser):
    parser.add_argument("--devices", nargs=2, metavar="INTERFACE")


def take(options):
    Verbs.devices, Life.nodes = options.devices, options.devices is None


if __name__ == "__main__":
    run_tests(__doc__, more=more, take=take)
