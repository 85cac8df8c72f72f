#!/usr/bin/env python3
"""Endpoints in two virtual nodes, or in one, talk when they have the same key. With another key, another protection or none on
one side nothing arrives, and the log of each side says why; a key that others can read opens no endpoint."""
import contextlib
import ctypes
import hashlib
import hmac
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "info"))
import endpoint_program  # noqa: E402
import process_memory  # noqa: E402
from endpoint_program import ScriptedEndpoint, connect, transfer, virtual_nodes  # noqa: E402

MEGABYTE = 1 << 20
LIBRARIES = ("libcrypto.so.3", "libcrypto.so.1.1")
WARNINGS = {
    "other key": "has another key than this process",
    "other mode": "has another FI_CLUSTER_SECURITY than this process",
    "sender has none": "has no key and this process has one",
    "receiver has none": "their sender has a key and this process has none",
    "no answer": "does not answer requests that are authenticated",
}


def derived(material):
    """What the provider makes of a key (seal/job_key.h)."""
    job = hmac.digest(b"cluster provider, seal version 1", material, hashlib.sha256)
    labels = ("association request", "keep-alive", "shared memory")
    return {"job key": job} | {label: hmac.digest(job, label.encode() + b"\1", hashlib.sha256) for label in labels}


def found(library):
    with contextlib.suppress(OSError):
        return ctypes.CDLL(library) is not None
    return False


class Keys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared()
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.key = cls.write(os.path.join(directory.name, "key"))
        cls.other = cls.write(os.path.join(directory.name, "other"))
        cls.open_to_all = cls.write(os.path.join(directory.name, "open_to_all"), 0o644)

    @staticmethod
    def write(path, mode=0o600):
        with open(path, "w", encoding="ascii") as file:
            file.write(os.urandom(32).hex() + "\n")
        os.chmod(path, mode)
        return path

    def start(self, node, key, security="auto", **settings):
        if key:
            settings["FI_CLUSTER_KEY_FILE"] = key
        settings = {"FI_LOG_LEVEL": "warn", "FI_CLUSTER_SECURITY": security, **settings}
        made = ScriptedEndpoint(self.cluster.command(node), **settings)
        self.addCleanup(self.end, made)
        return made

    @staticmethod
    def end(scripted):
        """For an endpoint that may wait in vain."""
        scripted.process.kill()
        with contextlib.suppress(BrokenPipeError):
            scripted.close()

    def assert_one_warning(self, scripted, which):
        log = scripted.log()
        for name, words in WARNINGS.items():
            self.assertEqual(log.count(words), 1 if name == which else 0, f"{name}:\n{log}")
        self.assertIn("(set ", log)

    def test_the_same_key(self):
        for link in ("packet", "udp"):
            for security in ("auth", "encrypt"):
                with self.subTest(link=link, security=security):
                    one, other = (self.start(node, self.key, security, FI_CLUSTER_LINK=link) for node in (1, 2))
                    connect(one, other)
                    for sender, receiver in ((one, other), (other, one)):
                        transfer(sender, receiver, 50)
                        transfer(sender, receiver, 8, MEGABYTE)
                    for each in (one, other):
                        self.assertEqual(each.close(), 0)

    def test_the_same_key_on_one_node(self):
        """Shared memory, in both directions, behind one greeting each."""
        one, other = (self.start(1, self.key, FI_LOG_LEVEL="info") for _ in range(2))
        connect(one, other)
        for sender, receiver in ((one, other), (other, one)):
            transfer(sender, receiver, 50)
            transfer(sender, receiver, 8, MEGABYTE)
        for each in (one, other):
            self.assertIn("is reached over shared memory", each.log())
            self.assertNotIn("is reached over the", each.log())
            self.assertEqual(each.close(), 0)

    def test_sides_that_do_not_agree(self):
        """All at once: each sender waits until its peer is declared dead."""
        cases = [((self.key, "auth"), (self.other, "auth"), "no answer", "other key"),
                 ((self.key, "auth"), (self.key, "encrypt"), "no answer", "other mode"),
                 ((self.key, "auth"), (None, "auto"), "no answer", "receiver has none"),
                 ((None, "auto"), (self.key, "encrypt"), "receiver has none", "sender has none")]
        pairs = []
        one_node = [case for case in cases if case[-1] != "other mode"]  # messages in shared memory are neither
        nodes = [2] * len(cases) + [1] * len(one_node)
        cases += one_node
        for number, (node, (sending, receiving, *_)) in enumerate(zip(nodes, cases)):
            settings = {"FI_CLUSTER_LINK": ("packet", "udp")[number % 2], "FI_CLUSTER_PEER_TIMEOUT": "2500"}
            sender, receiver = self.start(1, *sending, **settings), self.start(node, *receiving, **settings)
            connect(sender, receiver)
            receiver.begin("receive 1")
            sender.begin("send 1 8")
            pairs.append((sender, receiver))
        for (sender, receiver), (*_, at_sender, at_receiver), node in zip(pairs, cases, nodes):
            with self.subTest(at_sender=at_sender, at_receiver=at_receiver, node=node):
                if at_sender == "receiver has none":  # without a key it takes a peer whose port is open for stopped, for a minute
                    for _ in endpoint_program.attempts():
                        if WARNINGS[at_sender] in sender.log() and WARNINGS[at_receiver] in receiver.log():
                            break
                    self.assertIsNone(sender.process.poll(), "the message counts as delivered")
                else:
                    self.assertEqual(sender.process.wait(endpoint_program.SECONDS_MAX), 1, "the message counts as delivered")
                self.assert_one_warning(sender, at_sender)
                self.assert_one_warning(receiver, at_receiver)
                self.assertIsNone(receiver.process.poll(), receiver.log())
                receiver.process.kill()
                self.assertEqual(receiver.process.stdout.read(), "", "something was received")

    def test_core_dumps_and_logs_have_no_key(self):
        one, other = (self.start(1, self.key, FI_LOG_LEVEL="debug", FI_CLUSTER_SHM=shm) for shm in ("yes", "no"))
        connect(one, other)
        transfer(one, other, 50)
        transfer(other, one, 8, MEGABYTE)
        with open(self.key, encoding="ascii") as file:
            digits = file.read().strip()
        keys = derived(bytes.fromhex(digits))
        secrets = keys | {"its digits": digits.encode(), "its bytes": bytes.fromhex(digits)}
        for each in (one, other):
            self.assertEqual(process_memory.contains(each.process.pid, secrets, dumped=True), set())
            self.assertEqual(process_memory.contains(each.process.pid, secrets, dumped=False), set(keys))
            log = each.log()
            self.assertGreater(len(log), 1000, "it is the log of all levels")
            self.assertEqual([name for name, secret in secrets.items() if secret.hex() in log or digits in log], [])

    def test_without_libcrypto_only_keys_are_missing(self):
        with tempfile.TemporaryDirectory() as directory:
            for library in LIBRARIES:
                with open(os.path.join(directory, library), "wb"):
                    pass
            one, other = (self.start(node, None, LD_LIBRARY_PATH=directory) for node in (1, 2))
            connect(one, other)
            transfer(one, other, 50)
            keyed = self.start(1, self.key, LD_LIBRARY_PATH=directory)
            self.assertEqual(keyed.process.wait(endpoint_program.SECONDS_MAX), 1)
            self.assertIn("there is no libcrypto.so.3 or libcrypto.so.1.1 (install OpenSSL)", keyed.log())

    def test_a_key_that_others_can_read(self):
        scripted = self.start(1, self.open_to_all)
        self.assertEqual(scripted.process.wait(endpoint_program.SECONDS_MAX), 1)
        lines = [line for line in scripted.log().splitlines() if self.open_to_all in line]
        self.assertEqual(len(lines), 1, scripted.log())
        self.assertIn(f'others may read or write it: run "chmod 600 {self.open_to_all}"', lines[0])


if __name__ == "__main__":
    arguments = endpoint_program.parse(__doc__)
    if not any(found(library) for library in LIBRARIES):
        virtual_nodes.skip("OpenSSL's libcrypto is not installed (" + " or ".join(LIBRARIES) + ")")
    unittest.main(argv=arguments, verbosity=2)
