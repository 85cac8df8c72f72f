"""cluster-dissect prints the frames of two virtual nodes, from a file and live, and accepts nothing damaged."""
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import faulty_network
import faulty_pingpong
from faulty_network import virtual_nodes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "attack"))
import forged_frames as forged  # noqa: E402

RECORD = os.path.join(os.path.dirname(os.path.realpath(__file__)), "pcap_recorder.py")
FILE_HEADER, PACKET_HEADER = 24, 16
DISSECT = ""
OPTIONS = None


def packets_of(content):
    """The packets of a capture as pcap_recorder.py writes it."""
    found, at = [], FILE_HEADER
    while at < len(content):
        length = struct.unpack_from("=I", content, at + 8)[0]
        found.append(content[at + PACKET_HEADER:at + PACKET_HEADER + length])
        at += PACKET_HEADER + length
    return found


def capture_of(packets, link_type=1):
    """A capture of these packets, one a millisecond."""
    text = struct.pack("=IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link_type)
    return text + b"".join(struct.pack("=IIII", 1, number * 10**6, len(packet), len(packet)) + packet
                           for number, packet in enumerate(packets))


def is_ours(packet):
    """IPv4 under its own or our EtherType, UDP, and the first byte of our frames."""
    return packet[12:14] in (b"\x08\x00", b"\x88\xb5") and packet[23] == 17 and packet[42:43] == b"\xc5"


class Dissect(unittest.TestCase):
    """One run of fi_pingpong over each link, recorded at a port of the switch: a sender's own interface does not show what
    goes past its queueing discipline."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2)
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.captures = {link: cls.record(link) for link in ("packet", "udp")}

    @classmethod
    def record(cls, link):
        path = os.path.join(cls.directory.name, link)
        OPTIONS.link = link
        with subprocess.Popen(cls.cluster.command("switch", sys.executable, "-B", RECORD, "n2r0", path),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
            recorder.stdout.readline()
            reason = faulty_pingpong.pingpong(cls.cluster, faulty_network.environment(OPTIONS), 20_000)
            recorder.stdin.close()
        if reason:
            raise RuntimeError(reason)
        with open(path, "rb") as file:
            return file.read()

    def dissect(self, content, *options, status=0):
        """Lines and summary."""
        result = subprocess.run([DISSECT, *options, "-"], input=content, capture_output=True, check=False, timeout=60)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout.decode().splitlines(), result.stderr.decode().strip()

    def ours(self, link="udp"):
        return [packet for packet in packets_of(self.captures[link]) if is_ours(packet)]

    def test_every_frame_of_both_links_is_understood(self):
        for link, content in self.captures.items():
            lines, summary = self.dissect(content, "--segments")
            text = "\n".join(lines)
            self.assertNotIn("refused", summary)
            self.assertFalse("malformed" in text)
            for word in ("[opening 10.", "epoch", "ack-now", "announce length", "pull length", "bulk length", "done length"):
                self.assertTrue(word in text, f"{link}: no {word}")
            frames = [line for line in lines if not line.startswith("   " * 4)]
            self.assertEqual(f"{len(frames)} frames", summary.split(",")[0])
            self.assertGreaterEqual(len(frames), len(self.ours(link)))
            times = [float(line.split()[0]) for line in frames]
            self.assertEqual(times, sorted(times))

    def test_filters(self):
        content = self.captures["udp"]
        everything, _ = self.dissect(content)
        here, there = self.cluster.address(1), self.cluster.address(2)
        self.assertEqual(self.dissect(content, "--peer", here)[0], everything)
        self.assertEqual(self.dissect(content, "--peer", "10.0.0.77")[0], [])
        port = re.search(re.escape(there) + r":(\d+)", everything[0]).group(1)
        self.assertEqual(self.dissect(content, "--port", port)[0], everything)
        other = next(str(number) for number in range(1, 9) if str(number) != port)
        self.assertEqual(self.dissect(content, "--port", other)[0], [])
        self.assertEqual(len(self.dissect(content, "--count", "5")[0]), 5)

    def test_damage(self):
        packet = bytearray(self.ours()[0])
        packet[-1] ^= 4
        lines, summary = self.dissect(capture_of([bytes(packet), self.ours()[1]]))
        self.assertIn("damaged, ", lines[0])
        self.assertIn("1 refused", summary)
        packet[43] = 99  # an unknown version
        self.assertIn("malformed, ", self.dissect(capture_of([bytes(packet)]))[0][0])

    def test_a_part_of_a_frame_is_not_looked_into(self):
        """Its bytes are some of the middle of a segment."""
        packet, piece = self.ours()[0], b"\xff" * 100
        frame = forged.frame(flags=forged.SEQUENCED | forged.PART, session=5, body=struct.pack("<BBH", 1, 3, 300) + piece)
        headers = bytearray(packet[:42])
        headers[16:18], headers[38:40] = struct.pack("!H", 28 + len(frame)), struct.pack("!H", 8 + len(frame))
        lines, summary = self.dissect(capture_of([bytes(headers) + frame]), "--segments")
        self.assertEqual(summary, "1 frame")
        self.assertIn("part 2 of 3 of 300 bytes", lines[0])
        self.assertIn("a part of segments, 100 bytes", lines[1])

    def test_others_are_named_only_if_asked_for(self):
        packet = bytearray(self.ours()[0])
        packet[42] = 0
        content = capture_of([bytes(packet)])
        self.assertEqual(self.dissect(content), ([], "0 frames, 1 other datagrams"))
        self.assertIn("another protocol", self.dissect(content, "--all")[0][0])

    def test_other_framings(self):
        packet = self.ours()[0]
        plain = self.dissect(capture_of([packet]))
        tagged = packet[:12] + b"\x81\x00\x00\x05" + packet[12:]
        self.assertEqual(self.dissect(capture_of([tagged])), plain)
        self.assertEqual(self.dissect(capture_of([packet[14:]], link_type=101)), plain)
        self.assertEqual(self.dissect(capture_of([b"\x08\x00" + bytes(18) + packet[14:]], link_type=276)), plain)
        addresses = bytes(15) + b"\x01" + bytes(15) + b"\x02"
        six = b"\x60\0\0\0" + struct.pack(">H", len(packet) - 34) + b"\x11\x40" + addresses + packet[34:]
        self.assertIn("[::1]:", self.dissect(capture_of([packet[:12] + b"\x86\xdd" + six]))[0][0])

    def test_nothing_shorter_is_believed(self):
        packet = self.ours()[0]
        lines, summary = self.dissect(capture_of([packet[:length] for length in range(len(packet))]))
        self.assertTrue(summary.startswith("0 frames"), summary)
        self.assertTrue(all("cut off by the capture" in line or "malformed" in line for line in lines))

    def test_live(self):
        OPTIONS.link = "packet"
        with subprocess.Popen(self.cluster.command("switch", DISSECT, "--interface", "n2r0"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            self.assertIn("listening", process.stderr.readline())
            reason = faulty_pingpong.pingpong(self.cluster, faulty_network.environment(OPTIONS), 64)
            lines = [process.stdout.readline() for _ in range(101)]  # they have arrived and are shown soon
            process.send_signal(signal.SIGINT)
            lines += process.stdout.readlines()
            self.assertIsNone(reason)
            self.assertGreater(len(lines), 100)
            self.assertIn("frames", process.stderr.read())
            self.assertEqual(process.wait(10), 0)

    def test_refusals(self):
        for words, status in (([], 1), (["no-such-file"], 1), (["--interface", "no-such-one"], 1), (["--port", "0"], 2),
                              (["--what"], 2)):
            result = subprocess.run([DISSECT, *words], capture_output=True, text=True, check=False)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (status, 1), result.stderr)
        self.assertIn("--peer", subprocess.run([DISSECT, "--help"], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    made = faulty_network.parser(__doc__)
    made.add_argument("--dissect", required=True, help="the program")
    OPTIONS = made.parse_args()
    DISSECT = os.path.abspath(OPTIONS.dissect)
    faulty_network.require("fi_pingpong")
    unittest.main(argv=sys.argv[:1], verbosity=2)
