"""Where the two sides of a test run, how they are started there, and how they are ended."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import virtual_nodes  # noqa: E402
from vcluster_lib import temporary  # noqa: E402

READY_SECONDS = 20
_TABLES = (("udp", "07"), ("udp6", "07"), ("tcp", "0A"), ("tcp6", "0A"))  # of /proc/net, with the state of a server's socket


class Placement:
    """A server's node and a client's, which may be the same: of the named cluster, or of a new one."""

    def __init__(self, where, name=None):
        self.loopback = where == "loopback"
        self.cluster = None
        if not self.loopback:
            self.cluster = temporary.Cluster(name) if name else virtual_nodes.make(2)
        self.server, self.client = 1, 1 if where == "node" else 2
        self.server_address, self.client_address = (
            "127.0.0.1" if self.loopback else self.cluster.address(node) for node in (self.server, self.client))

    def start(self, node, command, environment, output):
        words = command if self.loopback else self.cluster.command(node, *command)
        return virtual_nodes.start(words, environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)

    def wait_for_server(self, server):
        """Until the server has a socket, or has ended, or its time is over. In a node there are no other sockets; on loopback,
        where there are, it gets a second."""
        deadline = time.monotonic() + (1 if self.loopback else READY_SECONDS)
        while time.monotonic() < deadline and server.poll() is None:
            if not self.loopback and self._has_socket():
                return
            time.sleep(0.02)

    def _has_socket(self):
        return any(line.split()[3] == state for table, state in _TABLES
                   for line in self.cluster.sockets(self.server, table))


def finish(child, deadline):
    """Its exit status; None if it had to be killed. No other process is ever killed."""
    try:
        return child.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None
