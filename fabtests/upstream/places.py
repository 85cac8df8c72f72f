"""Where the programs of one test stand, how they are started there, and how they are ended."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import nodes  # noqa: E402

READY_SECONDS = 20


VCLUSTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "util", "vcluster")


class ClusterNode:
    """A node of a cluster that util/vcluster has made, and perhaps given faults."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.address = self._output("getent", "ahostsv4", name).split()[0]

    def command(self, *command):
        return [VCLUSTER, "exec", "--name", self.cluster, self.name, *command]

    def read(self, path):
        """What a file of the node says; nothing where the machine is too busy for an answer."""
        try:
            return self._output("cat", path)
        except subprocess.TimeoutExpired:
            return ""

    def _output(self, *command):
        return subprocess.run(self.command(*command), check=True, capture_output=True, text=True, timeout=20).stdout


class Place:
    """A server's node and a client's, which may be one; made anew for every run of the runner unless
    there is a cluster to use."""

    def __init__(self, where, cluster=None):
        self.where = where
        self.cluster = cluster
        self.cable = None

    def __enter__(self):
        if self.where == "loopback":
            self.server_address = self.client_address = "127.0.0.1"
            self.server = self.client = None
            return self
        if self.cluster:
            self.server = ClusterNode(self.cluster, "node1")
            self.client = self.server if self.where == "node" else ClusterNode(self.cluster, "node2")
            self.server_address, self.client_address = self.server.address, self.client.address
            return self
        self.cable = nodes.Nodes()
        self.server, far = self.cable.__enter__()
        self.client = self.server if self.where == "node" else far
        self.server_address = nodes.ADDRESSES[0]
        self.client_address = nodes.ADDRESSES[0 if self.where == "node" else 1]
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
        for table, state in (("udp", "07"), ("udp6", "07"), ("tcp", "0A"), ("tcp6", "0A")):
            if any(line.split()[3] == state for line in self._table(table).splitlines()[1:]):
                return True
        return False

    def _table(self, name):
        if self.cluster:
            return self.server.read(f"/proc/net/{name}")
        with open(f"/proc/{self.server.holder.pid}/net/{name}", encoding="ascii") as lines:
            return lines.read()


def finish(child, deadline):
    """Its exit status; None if it had to be killed. Nobody else is ever killed."""
    try:
        return child.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return None
