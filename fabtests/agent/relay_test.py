#!/usr/bin/env python3
"""The relay of an agent: which keys it takes, and that endpoints with the key of a job become members. The endpoints are played here, so
the layout of docs/protocol.md 10 is written twice."""
import asyncio
import hashlib
import hmac
import os
import socket
import struct
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402, F401
from cluster_lib import build, job_key  # noqa: E402
from clusterd_lib import relay  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402
from clusterd_lib.history import History  # noqa: E402

REQUEST, OFFER, JOIN, JOINED = 16, 17, 18, 19
JOB = "0123456789abcdef" * 4
SECONDS = 20


def expand(key, label):
    return hmac.new(key, label + b"\x01", hashlib.sha256).digest()


class Endpoint:
    """A process of the job, with a name of its own."""

    def __init__(self, job):
        key = bytes.fromhex(job_key.relay_key(job))
        self.key_id, self.key = expand(key, b"id of a relay key")[:8], expand(key, b"frames of a relay")
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(1)

    def exchange(self, relay_at, kind, cookie=0):
        """The kind, cookie and member in the answer; socket.timeout without one."""
        header = struct.pack("<BBBBHH24x", 0xC5, 2, kind, 64, 96, 0)
        name = struct.pack("<BBH16s", 4, 0, 5000, bytes([10, 0, 0, 1]))
        frame = header + self.key_id + struct.pack("<QI", cookie, 0) + name + struct.pack("<Q", 77)
        self.socket.sendto(frame + hmac.new(self.key, frame, hashlib.sha256).digest()[:16], relay_at)
        answer = self.socket.recv(200)
        if hmac.new(self.key, answer[:80], hashlib.sha256).digest()[:16] != answer[80:]:
            raise ValueError("an answer with another key")
        return (answer[2], *struct.unpack_from("<QI", answer, 40))

    def join(self, relay_at):
        with self.socket:
            kind, cookie, _ = self.exchange(relay_at, REQUEST)
            if kind != OFFER:
                raise ValueError(f"no offer but {kind}")
            return self.exchange(relay_at, JOIN, cookie)


class AgentRelay(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "keys")

    def write(self, text, mode=0o600):
        with open(self.path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(self.path, mode)

    def test_a_line_is_a_job_with_one_or_two_keys(self):
        one, other = job_key.relay_key(JOB), job_key.relay_key("1" * 64)
        self.write(f"# of two jobs\n{one} {other}\n\n{other}  # the second\n")
        self.assertEqual(relay.read_keys(self.path), [f"{one} {other}", other])

    def test_other_files_are_refused(self):
        for text in ("", "# nothing\n", JOB + " x\n", JOB[:32] + "\n"):
            self.write(text)
            with self.assertRaisesRegex(AgentError, "a line for each job"):
                relay.read_keys(self.path)
        self.write(JOB, 0o644)
        with self.assertRaisesRegex(AgentError, "--relay .*chmod 600"):
            relay.read_keys(self.path)

    def test_endpoints_with_the_key_become_members(self):
        if build.missing([relay.PROGRAM], self.build()):
            self.skipTest("cluster-relay is not built")
        self.write(job_key.relay_key("1" * 64) + "\n" + job_key.relay_key(JOB) + "\n")
        history = History()
        settings = types.SimpleNamespace(relay=self.path, relay_rate=1000, name="here")
        with mock.patch.object(build, "path", lambda target: os.path.join(self.build(), "util", "relay", target)), \
                mock.patch.object(build, "missing", lambda targets: []):
            asyncio.run(self.join_while_it_runs(relay.Relay(settings, history), history))

    def test_the_history_says_once_what_is_wrong(self):
        self.write(job_key.relay_key(JOB))
        program = os.path.join(os.path.dirname(self.path), "program")
        with open(program, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho 10.0.0.9:9227\necho\necho cluster-relay: one warning >&2\necho cluster-relay: two >&2\nexit 3\n")
        os.chmod(program, 0o755)
        history = History()
        settings = types.SimpleNamespace(relay=self.path, relay_rate=1000, name="here")
        with mock.patch.object(build, "path", lambda target: program), mock.patch.object(build, "missing", lambda targets: []), \
                mock.patch.object(relay, "_without_privilege", dict):
            served = relay.Relay(settings, history)
            for _ in range(3):
                asyncio.run(served.run())
        self.assertEqual([event["text"] for event in reversed(history.latest())],
                         ["forwards frames at 10.0.0.9:9227", "one warning", "two", "has ended with status 3: two"])

    @unittest.skipUnless(os.geteuid() == 0, "who runs the relay can also look into it")
    def test_no_program_of_the_same_user_reads_the_keys(self):
        if build.missing([relay.PROGRAM], self.build()):
            self.skipTest("cluster-relay is not built")
        self.write(job_key.relay_key(JOB))
        history = History()
        settings = types.SimpleNamespace(relay=self.path, relay_rate=1000, name="here")
        with mock.patch.object(build, "path", lambda target: os.path.join(self.build(), "util", "relay", target)), \
                mock.patch.object(build, "missing", lambda targets: []):
            asyncio.run(self.look_while_it_runs(relay.Relay(settings, history), history))

    async def look_while_it_runs(self, served, history):
        started = []
        real = asyncio.create_subprocess_exec

        async def start(*words, **more):
            started.append(await real(*words, **more))
            return started[0]

        with mock.patch.object(asyncio, "create_subprocess_exec", start):
            task = asyncio.ensure_future(served.run())
            until = asyncio.get_running_loop().time() + SECONDS
            while not history.latest() and asyncio.get_running_loop().time() < until and not task.done():
                await asyncio.sleep(0.05)
        self.assertIn("forwards frames at", history.latest()[0]["text"])
        self.assertEqual(os.stat(f"/proc/{started[0].pid}/mem").st_uid, 0, "its memory belongs to root, not to its user")
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    @staticmethod
    def build():
        return os.environ.get("BUILD", build.DEFAULT)

    async def join_while_it_runs(self, served, history):
        task = asyncio.ensure_future(served.run())
        loop = asyncio.get_running_loop()
        until = loop.time() + SECONDS
        while not history.latest() and loop.time() < until and not task.done():
            await asyncio.sleep(0.05)
        said = history.latest()[0]["text"]
        self.assertIn("forwards frames at", said)
        host, _, port = said.rpartition(" at ")[2].split(", ")[0].rpartition(":")
        kind, _, member = await loop.run_in_executor(None, Endpoint(JOB).join, (host, int(port)))
        self.assertEqual(kind, JOINED)
        self.assertNotEqual(member, 0)
        while served.report()["members"] != 1 and loop.time() < until:
            await asyncio.sleep(0.05)
        self.assertEqual((served.report()["members"], served.report()["frames"]), (1, 0))
        with self.assertRaises(socket.timeout):
            await loop.run_in_executor(None, Endpoint("2" * 64).join, (host, int(port)))
        while served.report()["refused"] == 0 and loop.time() < until:
            await asyncio.sleep(0.05)
        self.assertGreater(served.report()["refused"], 0)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertIsNone(served.report(), "there is no relay any more")


if __name__ == "__main__":
    unittest.main()
