"""`vcluster faults`: each fault happens to the given share of frames at the given places, and is counted."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

FRAMES = 10_000
SIGMAS = 6  # a correct program deviates by more once in half a billion runs
TRAFFIC = os.path.join(os.path.dirname(os.path.realpath(__file__)), "traffic.py")


def run(*arguments):
    return virtual_nodes.vcluster(*arguments, capture_output=True, timeout=60)


class Faults(unittest.TestCase):
    """Three nodes with two rails; numbered frames from node1 to node2 on the first."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(3, "--rails", "2", suffix="-faults")
        cls.name = cls.cluster.name
        cls.send(cls, "udp", 1)  # so that the nodes know each other's addresses

    def setUp(self):
        self.faults("--clear")

    def faults(self, *options):
        return self.cluster.faults(*options)

    def counts(self, *options):
        return self.cluster.fault_counts(*options)

    def send(self, way, count=FRAMES, *more, tail_lost=False):
        """The frames that arrived. `tail_lost`: the end marks are lost with the frames before them, so they are sent
        once more."""
        script = [sys.executable, "-B", TRAFFIC]
        with subprocess.Popen(self.cluster.command(2, *script, "receive", way), stdout=subprocess.PIPE, text=True) as receiver:
            address = receiver.stdout.readline().split()[1]
            self.cluster.run(1, *script, "send", way, address, str(count), *map(str, more))
            if tail_lost:
                self.cluster.run(1, *script, "send", way, address, "0")
            return json.loads(receiver.stdout.read())

    def about(self, count, share, of=FRAMES):
        spread = (of * share * (1 - share)) ** 0.5
        self.assertAlmostEqual(count, of * share, delta=SIGMAS * spread)

    def test_loss(self):
        for way in ("raw", "udp"):
            self.faults("--loss", "5%", "--nodes", "2")
            seen = self.send(way)
            self.about(FRAMES - seen["different"], 0.05)
            self.assertEqual((seen["arrived"], seen["late"], seen["damaged"]), (seen["different"], 0, 0))
            self.assertGreaterEqual(self.counts("--nodes", "2")[0]["lost"], len(seen["missing"]))

    def test_losses_in_runs(self):
        self.faults("--loss", "5%", "--burst", "10", "--nodes", "2")
        missing = self.send("raw")["missing"]
        self.assertAlmostEqual(len(missing), FRAMES * 0.05, delta=SIGMAS * 10 * (FRAMES * 0.005) ** 0.5)
        begins = [number for number in missing if number - 1 not in set(missing)]
        for begin in begins[:-1]:
            length = next(i for i in range(FRAMES) if begin + i not in set(missing))
            self.assertEqual(length % 10, 0, "runs of ten, or several of them one behind the other")

    def test_duplicates(self):
        for way in ("raw", "udp"):
            self.faults("--duplicate", "5%", "--nodes", "2")
            seen = self.send(way)
            self.assertEqual(seen["different"], FRAMES)
            self.about(seen["arrived"] - seen["different"], 0.05)

    def test_damage(self):
        self.faults("--corrupt", "5%", "--nodes", "2")
        seen = self.send("raw")
        # The copies of the last frame are damaged like all others.
        self.assertEqual(seen["damaged"], self.counts("--nodes", "2")[0]["corrupted"])
        self.about(FRAMES - seen["different"], 0.05)

    def test_reordering(self):
        for direction in ("to", "from"):
            self.faults("--clear")
            self.faults("--reorder", "5%", "--nodes", "2" if direction == "to" else "1", "--direction", direction)
            for way in ("raw", "udp"):
                seen = self.send(way)
                self.assertEqual((seen["arrived"], seen["different"], seen["damaged"]), (FRAMES, FRAMES, 0))
                self.assertGreater(seen["late"], 0)
                self.assertLessEqual(seen["late"], FRAMES * 0.05 + SIGMAS * (FRAMES * 0.05) ** 0.5)
            self.about(self.counts()[0]["reordered"], 0.05, of=2 * FRAMES)

    def test_delay_keeps_the_order_and_jitter_does_not(self):
        self.faults("--delay", "2ms", "--nodes", "2")
        seen = self.send("udp", 5000)
        self.assertEqual((seen["arrived"], seen["late"]), (5000, 0))
        self.faults("--delay", "2ms", "--jitter", "1ms", "--nodes", "2")
        seen = self.send("udp", 5000)
        self.assertEqual(seen["different"], 5000)
        self.assertGreater(seen["late"], 0)

    def test_a_delayed_connection_works(self):
        """TCP verifies its checksum, also where the sender had left it to the hardware."""
        self.faults("--delay", "1ms", "--loss", "1%")
        server = "import socket; s=socket.create_server(('', 0)); print(s.getsockname()[1], flush=True);" \
                 "c=s.accept()[0]; n=0\nwhile b:=c.recv(65536): n+=len(b)\nprint(n)"
        with subprocess.Popen(self.cluster.command(2, sys.executable, "-c", server), stdout=subprocess.PIPE,
                              text=True) as process:
            port = process.stdout.readline().strip()
            client = f"import socket; socket.create_connection(('node2', {port}), 30).sendall(bytes(200000))"
            self.cluster.run(1, sys.executable, "-c", client)
            self.assertEqual(process.stdout.readline(), "200000\n")

    def test_a_super_frame_is_lost_in_pieces(self):
        self.faults("--loss", "5%", "--nodes", "2")
        missing = self.send("udp", FRAMES, 200, 20)["missing"]
        self.about(len(missing), 0.05)
        self.assertGreater(len({number // 20 for number in missing}), len(missing) // 4)

    def test_other_traffic_is_spared(self):
        for only in ("udp", "ethertype"):
            self.faults("--loss", "100%", "--only", only)
            self.assertEqual(self.send("raw")["arrived"], FRAMES)
        self.assertEqual(self.send("udp")["arrived"], FRAMES)

    def test_where(self):
        self.faults("--loss", "50%", "--nodes", "3")
        self.faults("--loss", "50%", "--rails", "1")
        self.faults("--loss", "50%", "--nodes", "2", "--rails", "0", "--direction", "from")
        self.assertEqual(self.send("raw")["arrived"], FRAMES)
        listed = {(entry["node"], entry["rail"], entry["direction"]) for entry in json.loads(self.faults("--list", "--json"))}
        self.assertEqual(listed, {("node1", 1, "to"), ("node2", 1, "to"), ("node3", 1, "to"), ("node3", 0, "to"),
                                  ("node2", 0, "from")})
        self.faults("--clear", "--rails", "1")
        self.assertEqual(len(self.counts()), 2)

    def test_changed_while_frames_pass(self):
        self.faults("--loss", "50%", "--nodes", "2")
        self.about(len(self.send("raw")["missing"]), 0.5)
        self.faults("--loss", "0", "--nodes", "2")
        self.assertEqual(self.send("raw")["missing"], [])
        self.assertEqual(self.counts()[0]["lost"], 0)

    def test_rate_and_buffer(self):
        """A burst far larger than the queue loses its end; one that fits loses nothing."""
        self.faults("--rate", "10mbit", "--buffer", "64k", "--nodes", "2")
        self.assertEqual(self.send("raw", 30, 1400)["arrived"], 30)
        seen = self.send("raw", 1000, 1400, tail_lost=True)
        self.assertLess(seen["arrived"], 500)
        self.assertGreater(self.counts()[0]["tail_drops"], 500)
        self.faults("--clear")
        self.assertNotIn("tbf", self.cluster.run("switch", "tc", "qdisc", "show", "dev", "n2r0"))
        self.assertEqual(self.send("raw", 1000, 1400)["arrived"], 1000)

    def test_a_port_that_is_only_shaped_leaves_super_frames_whole(self):
        """They are counted as the frames that they are, and take no turn through the cutter."""
        self.faults("--rate", "1gbit", "--buffer", "1m", "--nodes", "2")
        self.assertEqual(self.send("udp", 2000, 200, 20)["arrived"], 2000)
        self.assertGreaterEqual(self.counts()[0]["seen"], 2000)
        self.assertEqual(self._frames_through_the_cutter(), 0)
        self.faults("--loss", "0", "--rate", "1gbit", "--buffer", "1m", "--nodes", "2")
        self.assertEqual(self.send("udp", 2000, 200, 20)["arrived"], 2000)
        self.assertGreaterEqual(self._frames_through_the_cutter(), 2000)

    def _frames_through_the_cutter(self):
        shown = json.loads(self.cluster.run("switch", "ip", "-json", "-statistics", "link", "show", "dev", "cutter"))
        return shown[0]["stats64"]["tx"]["packets"]

    def test_nothing_is_left(self):
        self.faults("--delay", "5ms", "--loss", "1%", "--direction", "both")
        self.faults("--clear")
        self.assertEqual(self.faults("--list"), "no faults\n")
        self.assertEqual(self.send("raw")["missing"], [])
        self.assertEqual(self.cluster.run("switch", "tc", "filter", "show", "dev", "n2r0", "egress"), "")
        queues = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if self._is_delay_queue(pid)]
        self.assertEqual(queues, [])

    def _is_delay_queue(self, pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as comm, open(f"/proc/{pid}/environ", "rb") as environ:
                return comm.read() == "delay_queue\n" and f"VCLUSTER_NAME={self.name}".encode() in environ.read()
        except OSError:
            return False

    def test_refusals(self):
        for options, reason in (
                (("--loss", "many"), "give percent"), (("--loss", "101%"), "give percent"),
                (("--delay", "1"), "give a time"), (("--jitter", "1ms"), "give --delay as well"),
                (("--buffer", "64k"), "only where there is a --rate"), (("--burst", "0"), "allowed are"),
                (("--nodes", "9", "--loss", "1"), "unknown node"), (("--rails", "2", "--loss", "1"), "has 0 to 1"),
                (("--clear", "--loss", "1"), "cannot be combined"), ((), "no fault given")):
            result = run("faults", "--name", self.name, *options)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
            self.assertIn(reason, result.stderr)


if __name__ == "__main__":
    virtual_nodes.require("clang")
    unittest.main(verbosity=2)
