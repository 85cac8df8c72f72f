"""Endpoints in separate processes (life_peer), and their state as their output lines tell it.

Tests wait for events and do not sleep for them. The times of events are from the monotonic clock, which all processes of this
host share. Limits are of the time that the machine has run (lived())."""
import argparse
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

SECONDS_MAX = 60  # for what must happen, on a machine that does much else


LATE = float(os.environ.get("LIFE_PATIENCE", "1"))  # times as much: on a machine that does much else


class _Lived(threading.Thread):
    """A clock that stands still while this machine does: while it is stopped, or waits for a processor of its host."""
    STEP = 0.01

    def __init__(self):
        super().__init__(daemon=True)
        self.seconds = 0.0

    def run(self):
        last = time.monotonic()
        while True:
            time.sleep(self.STEP)
            now = time.monotonic()
            self.seconds += min(now - last, 5 * self.STEP)
            last = now


_LIVED = _Lived()
_LIVED.start()


def lived():
    """Seconds that this machine has run. A virtual machine's own clock goes on while it is stopped."""
    return _LIVED.seconds


class Case(unittest.TestCase):
    """A test of how operations end when a process or a path ends."""
    def all_end(self, process, operations, since, bound):
        """Each operation ends with an error that has a text, at most `bound` seconds after `since`."""
        for operation in operations:
            end = process.end(operation)
            self.assertIsNotNone(end, f"{operation} never ends; {process.log()}")
            error, at, text = end
            self.assertTrue(error != 0 and text, f"{operation}: {end}")
            self.assertLess(at - since, bound * LATE, f"{operation}: {end}; {process.log()}")


class Life:
    """The settings of this run: the program and the directory of the plugin."""

    program = plugin = build = None
    nodes = True  # the tests need virtual nodes


def run_tests(description, *needs, more=None, take=None):
    """The tests of the program that calls this, all or those that its arguments name; `needs`: commands. `more` adds options to the
    parser, `take` gets what was given."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("only", nargs="*")
    if more is not None:
        more(parser)
    options = parser.parse_args()
    if take is not None:
        take(options)
    Life.program, Life.build = os.path.abspath(options.program), os.path.abspath(options.build)
    Life.plugin = os.path.join(Life.build, "prov", "cluster")
    if Life.nodes:
        virtual_nodes.require(*needs)
    unittest.main(argv=sys.argv[:1] + options.only)


class Process:
    """A life_peer; `before` are the words of a command that starts it in a node."""

    def __init__(self, before=(), port=None, **settings):
        self._log = tempfile.TemporaryFile("w+")
        environment = virtual_nodes.of_provider(Life.plugin, **settings)
        self.process = virtual_nodes.start([*before, Life.program, *([str(port)] if port else [])], environment, text=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True)
        self._lines = queue.Queue()
        self._operations = 0
        self._answers = {}
        self.ends, self.losses, self.children, self.got = {}, [], [], []
        threading.Thread(target=self._read, daemon=True).start()
        self.name = self._answer("name")

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.split())
        self._lines.put(None)

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def _next(self, deadline):
        """Takes in one line; False when none came before the deadline."""
        while True:
            left = deadline - lived()
            try:
                words = self._lines.get(timeout=min(max(left, 0), 0.5))
                break
            except queue.Empty:
                if left <= 0:
                    return False
        if words is None:
            raise RuntimeError(f"life_peer has ended: {self.log()}")
        if words[0] == "end":
            self.ends[words[1]] = (int(words[2]), int(words[3]) / 1e9, " ".join(words[4:]))
        elif words[0] == "got":
            self.got.append((int(words[1]), int(words[2])))
        elif words[0] == "wrong":
            raise RuntimeError(f"life_peer: {' '.join(words)}")
        elif words[0] == "lost":
            self.losses.append((int(words[1]), int(words[2]) / 1e9, " ".join(words[3:])))
        else:
            self._answers[words[0]] = words
        return True

    def until(self, reached, seconds=SECONDS_MAX):
        """Waits until `reached` is true; False on timeout."""
        deadline = lived() + seconds
        while not reached():
            if not self._next(deadline):
                return False
        return True

    def _answer(self, word):
        if not self.until(lambda: word in self._answers):
            raise RuntimeError(f"life_peer does not answer '{word}': {self.log()}")
        return self._answers.pop(word)[1]

    def do(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()

    def peer(self, name):
        self.do("peer " + name)
        return self._answer("peer")

    def post(self, kind, size, handle):
        """Begins an operation; returns what names it."""
        self._operations += 1
        operation = f"{kind}{self._operations}"
        self.do(f"post {operation} {kind} {size} {handle}")
        return operation

    def take(self):
        """Takes in all lines that are there."""
        while self._next(0):
            pass

    def end(self, operation, seconds=SECONDS_MAX):
        """(error, time, text) of an operation; None if it does not end."""
        return self.ends[operation] if self.until(lambda: operation in self.ends, seconds) else None

    def volleys(self):
        """The number of volley messages that have arrived."""
        self.do("volleys")
        return int(self._answer("volleys"))

    def fork(self, what):
        self.do("fork " + what)
        self.children.append(int(self._answer("child")))
        return self.children[-1]

    def used(self):
        return int(self._answer("used"))

    def signal(self, number):
        """Sends the signal; returns the time."""
        os.kill(self.pid, number)
        return time.monotonic()

    @property
    def pid(self):
        """Of the endpoint itself: nsenter and env have become it by exec."""
        return self.process.pid

    def kill(self):
        at = self.signal(signal.SIGKILL)
        self.process.wait(SECONDS_MAX)
        return at

    def close(self):
        for child in self.children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.close()
            try:
                self.process.wait(SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self._log.close()


def acquaint(one, other):
    """Each knows the other's address, and a message has gone each way; returns both handles."""
    to_other, to_one = one.peer(other.name), other.peer(one.name)
    for sender, receiver, handle in ((one, other, to_other), (other, one, to_one)):
        exchange(sender, receiver, handle)
    return to_other, to_one


def exchange(sender, receiver, handle, size=8):
    """One message; both ends are a success."""
    received, sent = receiver.post("any", size, 0), sender.post("send", size, handle)
    for process, operation in ((sender, sent), (receiver, received)):
        end = process.end(operation)
        if end is None or end[0] != 0:
            raise RuntimeError(f"{operation}: {end}; {sender.log()}; {receiver.log()}")
