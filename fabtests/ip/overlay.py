"""cluster-ip on virtual nodes, for the tests and for the table."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(_HERE, ".."))
import virtual_nodes  # noqa: E402

STREAM = os.path.join(_HERE, "stream.py")
SECONDS_MAX = 60
UP_SECONDS = 15


class Options:
    """The settings of this run; parse() sets them."""

    program = provider = None


def parse(text, *needed):
    """Reads the command line; returns the words for unittest. Skips the test where it cannot run."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="cluster-ip")
    parser.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    parser.add_argument("only", nargs="*", help="tests, as unittest names them (default: all)")
    options = parser.parse_args()
    Options.program, Options.provider = os.path.abspath(options.program), os.path.abspath(options.provider)
    require(*needed)
    return sys.argv[:1] + options.only


def require(*programs):
    """Skips the test where it cannot run."""
    virtual_nodes.require(*programs)
    if not os.path.exists("/dev/net/tun"):
        virtual_nodes.skip("there are no TUN devices here (modprobe tun)")


def ipv4(node):
    return f"10.9.0.{node}"


def ipv6(node):
    return f"fd09::{node}"


def start(test, words, **more):
    """A process that ends with the test."""
    started = virtual_nodes.start(words, **more)
    if started.stdout:
        test.addCleanup(started.stdout.close)
    test.addCleanup(started.wait)
    test.addCleanup(started.kill)
    return started


def processor_seconds(process):
    """What a process has used so far, in user mode and in the kernel."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_key(path, text="0a"):
    """A file for FI_CLUSTER_KEY_FILE."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write(text * 32)
    return path


class Daemon:
    """cluster-ip in a node."""

    def __init__(self, test, cluster, node, nodes, *options, **settings):
        self.cluster, self.node = cluster, node
        self._log = tempfile.TemporaryFile("w+")
        test.addCleanup(self._log.close)
        words = [Options.program, "--address", f"{ipv4(node)}/24,{ipv6(node)}/64", *options]
        if nodes:
            words += ["--nodes", ",".join(f"node{each}" for each in nodes)]
        self.process = start(test, cluster.command(node, *words), stderr=self._log,
                             environment=virtual_nodes.of_provider(Options.provider, **settings))

    def log(self):
        self._log.seek(0)
        return [line.strip() for line in self._log if line.startswith("cluster-ip: ")]

    def await_line(self, *parts):
        end = time.monotonic() + UP_SECONDS
        while time.monotonic() < end:
            if any(all(part in line for part in parts) for line in self.log()):
                return
            time.sleep(0.02)
        raise AssertionError(f"node{self.node} did not log {parts}: {self.log()}")

    def knows(self, node):
        self.await_line(f"node{node} (", f"is up: {ipv4(node)}, {ipv6(node)}")

    def processor_seconds(self):
        return processor_seconds(self.process.pid)

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmRSS"))

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends it in the orderly way; returns its counts, added up over its queues."""
        self.process.terminate()
        self.process.wait(SECONDS_MAX)
        totals = {}
        for line in self.log():
            if ": queue " in line:
                words = line.replace("(", "").replace(")", "").replace(",", "").replace(";", "").split()
                numbers = [int(word) for word in words[3:] if word.isdigit()]
                names = ("sent", "sent_bytes", "received", "received_bytes", "no_node", "too_many", "failed", "refused")
                for name, number in zip(names, numbers, strict=True):
                    totals[name] = totals.get(name, 0) + number
        return totals


class Overlay:
    """A daemon on each of the nodes, and all know each other. A setting may be a function of the node."""

    def __init__(self, test, cluster, nodes, *options, **settings):
        self.cluster, self.nodes, self._options, self._settings = cluster, range(1, nodes + 1), options, settings
        self._test, self.daemons = test, {}
        for node in self.nodes:
            self.start(node)
        for node, daemon in self.daemons.items():
            for other in self.nodes:
                if other != node:
                    daemon.knows(other)

    def start(self, node):
        settings = {name: value(node) if callable(value) else value for name, value in self._settings.items()}
        self.daemons[node] = Daemon(self._test, self.cluster, node, self.nodes, *self._options, **settings)

    def python(self, node, *words, **more):
        """stream.py in a node."""
        return start(self._test, self.cluster.command(node, sys.executable, "-B", STREAM, *map(str, words)),
                     text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)

    def listening(self, node, *words):
        started = self.python(node, *words)
        self._test.assertEqual(started.stdout.readline(), "listening\n")
        return started

    def ping(self, node, address, count=3):
        """How many of the pings came back."""
        said = subprocess.run(self.cluster.command(node, "ping", "-c", str(count), "-i", "0.05", "-W", "2", address),
                              capture_output=True, text=True, timeout=SECONDS_MAX, check=False).stdout
        return next(int(line.split()[3]) for line in said.splitlines() if "packets transmitted" in line)

    def ask(self, node, address, port, length, *more):
        """Which addresses answer a datagram, in order."""
        return sorted(self.python(node, "ask", address, port, length, *more).communicate(timeout=SECONDS_MAX)[0].split())


class Stream:
    """A checked TCP stream from one node of an overlay to another."""

    def __init__(self, overlay, sender, receiver, address, megabytes, port=5001):
        self._test, self.bytes = overlay._test, megabytes << 20
        self.receiver = overlay.listening(receiver, "receive", port)
        self.sender = overlay.python(sender, "send", address, port, megabytes)
        self._test.assertEqual(self.sender.stdout.readline(), "connected\n")

    def finish(self, seconds=SECONDS_MAX):
        """All bytes have come and are right; returns seconds and the longest gap."""
        status, said = self.sender.wait(seconds), self.sender.stdout.read()
        self._test.assertEqual((status, said), (0, ""), said)
        said = self.receiver.communicate(timeout=seconds)[0].split()
        self._test.assertEqual(said[:2], ["received", str(self.bytes)], " ".join(said))
        return float(said[2]), float(said[3])
