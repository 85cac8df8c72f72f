"""Runs cluster-info, and endpoints in separate processes (scripted_ep) that execute one command after the other."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

_FABTESTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
sys.path.insert(0, _FABTESTS)
import virtual_nodes  # noqa: E402

SECONDS_MAX = 120
STATE_SECONDS = 30  # until an expected state must be reached


def attempts(seconds=STATE_SECONDS):
    """Yields until the time is over: for loops that wait for a state and make progress themselves."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


class Options:
    """The settings of this run; parse() sets them."""

    build = endpoint_program = link = None


def parse(text):
    """Reads the command line; skips the test when virtual nodes or cluster-info are missing."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--build", required=True, help="the build tree")
    parser.add_argument("--endpoint-program", required=True, help="the program scripted_ep")
    parser.add_argument("--link", choices=("packet", "udp"), default="udp", help="of tests that use one (default: %(default)s)")
    parser.add_argument("only", nargs="*", help="tests, as unittest names them (default: all)")
    options = parser.parse_args()
    Options.link = options.link
    Options.build, Options.endpoint_program = os.path.abspath(options.build), os.path.abspath(options.endpoint_program)
    if not os.path.exists(os.path.join(Options.build, "util", "info", "cluster-info")):
        virtual_nodes.skip("cluster-info is not built (it needs CLI11)")
    virtual_nodes.require()
    return sys.argv[:1] + options.only


def environment(**settings):
    return virtual_nodes.of_provider(os.path.join(Options.build, "prov", "cluster"), **settings)


def run(*words, before=(), **settings):
    """cluster-info by the command of the tree; `before` are the words of a command that runs it in a node."""
    tool = os.path.join(_FABTESTS, "..", "util", "cluster-info")
    return subprocess.run([*before, tool, "--build", Options.build, *words], env=environment(**settings),
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def query(*words, **options):
    """The JSON that cluster-info prints."""
    result = run("--json", *words, **options)
    if result.returncode != 0:
        raise RuntimeError(f"cluster-info: {result.returncode}: {result.stderr}")
    return json.loads(result.stdout)


class ScriptedEndpoint:
    """An endpoint in a process of its own; `before` are the words of a command that starts it in a node."""

    def __init__(self, before=(), **settings):
        self._log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*before, Options.endpoint_program], env=environment(**settings), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)

    def begin(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def end(self):
        """Waits until the command is done; returns the answer."""
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"scripted_ep ended with status {self.process.wait(SECONDS_MAX)}: {self.log()}")
        return answer

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def do(self, order):
        self.begin(order)
        return self.end()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self._log.close()
        return self.process.wait(SECONDS_MAX)


def connect(one, other):
    """Each inserts the other's address."""
    one.do("peer " + other.do("name"))
    other.do("peer " + one.do("name"))


def transfer(sender, receiver, count, size=8):
    """`count` messages of `size` bytes, compared by the receiver."""
    receiver.begin(f"receive {count}")
    sender.do(f"send {count} {size}")
    receiver.end()
