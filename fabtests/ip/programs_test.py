#!/usr/bin/env python3
"""Programs that administrators use, over cluster-ip: ssh, scp, rsync, sshfs and curl. Everything that they carry is compared.

    programs_test.py --program cluster-ip --provider DIRECTORY [TEST...]

A server of OpenSSH runs in node 2, with keys of its own and its own configuration; the clients run in node 1.
"""
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import files
import overlay
from overlay import Overlay, ipv4, ipv6, virtual_nodes

PORT, HTTP_PORT = 2222, 8080
SECONDS_MAX = 60
FILES, FILE_BYTES = 40, 200 << 10
LARGE_BYTES = 32 << 20
LINES = 300  # of a session, each of which waits for its answer
SFTP = "/usr/lib/openssh/sftp-server"
FILES_PROGRAM = os.path.join(os.path.dirname(os.path.realpath(__file__)), "files.py")
SERVER = """\
Port {port}
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
Subsystem sftp {sftp}
"""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def tree(directory):
    """Name -> digest of every file below."""
    return {str(path.relative_to(directory)): digest(path.read_bytes()) for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared(2)

    def setUp(self):
        self.over = Overlay(self, self.cluster, 2)
        self.directory = self.enterContext(tempfile.TemporaryDirectory())

    def _path(self, *parts):
        return os.path.join(self.directory, *parts)

    def _listens(self, server, port):
        end = time.monotonic() + SECONDS_MAX
        while not self.cluster.listens(2, port):
            self.assertIsNone(server.poll(), "the server has ended")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def _serve_ssh(self):
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._path(name)], check=True)
        with open(self._path("server"), "w", encoding="ascii") as file:
            file.write(SERVER.format(port=PORT, directory=self.directory, sftp=SFTP))
        self.cluster.run(2, "mkdir", "-p", "/run/sshd")  # sshd demands it
        # sshd starts itself again for each connection, so it demands its whole path.
        self._listens(overlay.start(self, self.cluster.command(2, shutil.which("sshd"), "-D", "-e", "-f", self._path("server")),
                                    stderr=subprocess.DEVNULL), PORT)

    def _ssh_options(self):
        settings = {"IdentityFile": self._path("user"), "UserKnownHostsFile": self._path("known"), "StrictHostKeyChecking": "accept-new",
                    "BatchMode": "yes", "IdentitiesOnly": "yes", "LogLevel": "ERROR"}
        return ["-F", "none", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]

    def _ssh(self, address, *words):
        return ["ssh", *self._ssh_options(), "-p", str(PORT), f"root@{address}", *words]

    def _make_files(self, name):
        os.mkdir(self._path(name))
        files.write(self._path(name), FILES, FILE_BYTES)
        return self._path(name)

    def test_ssh(self):
        self._serve_ssh()
        data = random.Random(2).randbytes(LARGE_BYTES)
        for address in (ipv4(2), ipv6(2)):
            self.assertEqual(self.cluster.run(1, *self._ssh(address, "hostname")).strip(), "node2")
            said = subprocess.run(self.cluster.command(1, *self._ssh(address, "cat")), input=data, capture_output=True, check=True,
                                  timeout=SECONDS_MAX).stdout
            self.assertEqual(digest(said), digest(data), "what goes there comes back")
        self.assertGreater(self.over.daemons[1].stop()["sent_bytes"], 2 * LARGE_BYTES)

    def test_a_session_outlives_a_killed_daemon(self):
        """Lines and their answers, one by one, as a terminal has them."""
        self._serve_ssh()
        session = overlay.start(self, self.cluster.command(1, *self._ssh(ipv4(2), "cat")), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                text=True, bufsize=1)
        self.addCleanup(session.stdin.close)
        for number in range(LINES):
            if number == LINES // 2:
                self.over.daemons[2].kill()
                self.over.start(2)
            session.stdin.write(f"line {number}\n")
            self.assertEqual(session.stdout.readline(), f"line {number}\n")

    def test_scp(self):
        self._serve_ssh()
        there, back = self._make_files("there"), self._path("back")
        copy = ["scp", "-q", "-r", *self._ssh_options(), "-P", str(PORT)]
        self.cluster.run(1, *copy, there, f"root@{ipv4(2)}:{self._path('at2')}")
        self.cluster.run(1, *copy, f"root@[{ipv6(2)}]:{self._path('at2')}", back)
        self.assertEqual(len(tree(there)), FILES)
        self.assertEqual(tree(back), tree(there))

    def test_rsync(self):
        self._serve_ssh()
        there, at2 = self._make_files("there"), self._path("at2")
        shell = " ".join(["ssh", *self._ssh_options(), "-p", str(PORT)])
        copy = ["rsync", "--archive", "--delete", "--checksum", "--rsh", shell, f"{there}/", f"root@{ipv4(2)}:{at2}/"]
        self.cluster.run(1, *copy)
        self.assertEqual(tree(at2), tree(there))
        # The second time, only what differs.
        with open(os.path.join(there, "file3"), "r+b") as file:
            file.seek(1000)
            file.write(b"other bytes")
        os.unlink(os.path.join(there, "file5"))
        self.cluster.run(1, *copy)
        self.assertEqual(tree(at2), tree(there))
        self.assertEqual(len(tree(at2)), FILES - 1)

    def test_sshfs(self):
        if shutil.which("sshfs") is None or not os.path.exists("/dev/fuse"):
            self.skipTest("sshfs is not installed, or there is no FUSE here")
        self._serve_ssh()
        mount, at2 = self._path("mount"), self._path("at2")
        for each in (mount, at2):
            os.mkdir(each)
        settings = [word for word in self._ssh_options() if "=" in word]
        self.cluster.run(1, "sshfs", f"root@{ipv4(2)}:{at2}", mount, "-p", str(PORT), *(word for each in settings for word in ("-o", each)))
        self.addCleanup(self.cluster.run, 1, "umount", "-l", mount)
        self.assertIn(f" {mount} fuse.sshfs ", self.cluster.run(1, "cat", "/proc/mounts"))

        def at_1(*words):
            return self.cluster.run(1, sys.executable, "-B", FILES_PROGRAM, *map(str, words)).split()

        os.mkdir(os.path.join(at2, "empty"))
        print("sshfs: create, stat, unlink, 1/s:", *at_1("metadata", os.path.join(mount, "empty"), 200), flush=True)
        at_1("write", mount, FILES, FILE_BYTES)
        self.assertEqual(at_1("check", mount), [str(FILES)])
        self.assertEqual(self.cluster.run(2, sys.executable, "-B", FILES_PROGRAM, "check", at2).split(), [str(FILES)])

    def test_several_downloads_at_once(self):
        there, back = self._make_files("there"), self._path("back")
        os.mkdir(back)
        server = overlay.start(self, self.cluster.command(2, sys.executable, "-m", "http.server", "--bind", ipv4(2), "--directory", there, str(HTTP_PORT)),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._listens(server, HTTP_PORT)
        self.cluster.run(1, "curl", "--silent", "--show-error", "--fail", "--parallel", "--output", f"{back}/file#1",
                         f"http://{ipv4(2)}:{HTTP_PORT}/file[0-{FILES - 1}]")
        self.assertEqual(tree(back), tree(there))


if __name__ == "__main__":
    unittest.main(argv=overlay.parse(__doc__, "ping", "ssh", "sshd", "scp", "rsync", "curl"), verbosity=2)
