"""Where the programs of one test stand, how they are started there, and how they are ended."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import nodes  # noqa: E402

READY_SECONDS = 20


class Place:
    """A server's node and a client's, which may be one; made anew for every run of the runner."""

    def __init__(self, where, loss=0.0):
        self.where = where
        self.loss = loss
        self.cable = None

    def __enter__(self):
        if self.where == "loopback":
            self.server_address = self.client_address = "127.0.0.1"
            self.server = self.client = None
            return self
        self.cable = nodes.Nodes()
        self.server, far = self.cable.__enter__()
        self.client = self.server if self.where == "node" else far
        self.server_address = nodes.ADDRESSES[0]
        self.client_address = nodes.ADDRESSES[0 if self.where == "node" else 1]
        if self.loss:
            for node in (self.server, far):
                node.run("tc", "qdisc", "add", "dev", "net0", "root", "netem", "loss", f"{self.loss}%")
        return self

    def __exit__(self, *reason):
        if self.cable is not None:
            self.cable.__exit__(*reason)

    def start(self, node, command, environment, output):
        words = command if node is None else node.command(*command)
        return nodes.start(words, environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def wait_for_server(self, server):
        """Until the server has a socket, or is gone, or has had its time. In a node there are no other
        sockets; on loopback, where there are, it is given a moment."""
        deadline = time.monotonic() + (READY_SECONDS if self.server else 1)
        while time.monotonic() < deadline and server.poll() is None:
            if self.server is not None and self._has_socket():
                return
            time.sleep(0.05)

    def _has_socket(self):
        tables = f"/proc/{self.server.holder.pid}/net"
        for table, states in (("udp", ("07",)), ("udp6", ("07",)), ("tcp", ("0A",)), ("tcp6", ("0A",))):
            with open(f"{tables}/{table}", encoding="ascii") as lines:
                if any(line.split()[3] in states for line in list(lines)[1:]):
                    return True
        return False


def finish(child, deadline):
    """Its exit status; None if it had to be killed. Nobody else is ever killed."""
    try:
        return child.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None
