"""Virtual nodes for tests: network namespaces that live exactly as long as this process.

Each is held by a child that waits on a pipe from here, so even a killed test leaves nothing behind:
no name, no interface, no process. They are joined by a veth pair and see nobody else.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import time

ADDRESSES = ("10.77.0.1", "10.77.0.2")
SKIPPED = 77  # exit code that ctest takes for "not run here"


class Node:
    """One network namespace."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "up\n":
            raise RuntimeError("cannot make a network namespace (are you root?)")
        self.path = f"/proc/{self.holder.pid}/ns/net"
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *command):
        return ["nsenter", f"--net={self.path}", *command]

    def run(self, *command):
        subprocess.run(self.command(*command), check=True, timeout=20)

    def listens(self, port):
        """True if somebody on this node accepts TCP connections on `port`."""
        with open(f"/proc/{self.holder.pid}/net/tcp", encoding="ascii") as table:
            return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
                       for line in list(table)[1:])

    def close(self):
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.holder.wait()


class Nodes:
    """Two nodes with a cable between them; use it in a `with` statement."""

    def __enter__(self):
        self.nodes = [Node(), Node()]
        a, b = self.nodes
        a.run("ip", "link", "add", "net0", "type", "veth", "peer", "name", "net0", "netns", str(b.holder.pid))
        for node, address in zip(self.nodes, ADDRESSES):
            node.run("ip", "address", "add", f"{address}/24", "dev", "net0")
            node.run("ip", "link", "set", "net0", "up")
        deadline = time.monotonic() + 5
        while not all(self._carrier(node) for node in self.nodes) and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.nodes

    @staticmethod
    def _carrier(node):
        shown = subprocess.run(node.command("ip", "-brief", "link", "show", "net0"), check=True,
                               capture_output=True, text=True, timeout=20)
        return " UP " in shown.stdout

    def __exit__(self, *_):
        for node in self.nodes:
            node.close()


def unavailable():
    """Why no virtual nodes can be made here, in one line; or None."""
    if os.geteuid() != 0:
        return "virtual nodes need root: not run"
    missing = [tool for tool in ("unshare", "nsenter", "ip") if shutil.which(tool) is None]
    return f"virtual nodes need {', '.join(missing)} (Debian: util-linux, iproute2): not run" if missing else None


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start(command, environment=None, **more):
    """A child that cannot outlive this process."""
    return subprocess.Popen(command, env={**os.environ, **(environment or {})},
                            preexec_fn=_die_with_parent, **more)
