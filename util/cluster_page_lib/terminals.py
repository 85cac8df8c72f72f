"""Terminals of users: a shell that runs as the user on the node of the page, with a virtual machine at hand.

Each is a job with a number of its own, so that all it has started ends with it, on every node of the machine. Who had a
terminal, on which machine, and when, is kept; what was typed is not.
"""
import asyncio
import contextlib
import os
import struct
import time
from collections import Counter

from clusterd_lib import accounts, audit, job_group
from clusterd_lib.errors import AgentError

from . import commands
from .archive import Archive
from .jobs import surroundings

OF_USER_MAX, MAX = 4, 64
KEPT = 5000
SIZE_MAX = 1000
FRAME_MAX = 1 << 15
PIECE = 1 << 14
_HERE = os.path.dirname(os.path.realpath(__file__))
_WORDS = ("/usr/bin/python3", "-I", "-B", os.path.join(_HERE, "terminal_child.py"))


def frame(kind, content):
    return kind + len(content).to_bytes(2, "big") + content


class Terminal:
    """One open terminal; `nodes` are those of its machine."""

    def __init__(self, process, entry, nodes):
        self._process, self.entry, self.nodes = process, entry, nodes

    async def type(self, data):
        for at in range(0, len(data), FRAME_MAX):
            await self._send(frame(b"d", data[at:at + FRAME_MAX]))

    async def resize(self, rows, columns):
        if 0 < rows <= SIZE_MAX and 0 < columns <= SIZE_MAX:
            await self._send(frame(b"r", struct.pack("!HH", rows, columns)))

    async def _send(self, data):
        with contextlib.suppress(ConnectionError):  # the shell has ended: the reader of `read` learns it
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def read(self):
        """What the shell prints; nothing at its end."""
        return await self._process.stdout.read(PIECE)

    async def close(self):
        self._process.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), 2)


class Terminals:
    def __init__(self, settings, cluster):
        self._settings, self._cluster = settings, cluster
        self.past = Archive(os.path.join(settings.state, "terminals.jsonl"), KEPT)
        self._open, self._number = Counter(), 0

    async def open(self, user, address, machine="", nodes=()):
        if self._open[user] >= OF_USER_MAX or self._open.total() >= MAX:
            raise AgentError(f"{OF_USER_MAX} terminals of {user} are open already, or {MAX} terminals of all users: close one first")
        self._open[user] += 1
        try:
            self._number = max(self._number + 1, int(time.time() * 1000))
            process = await commands.started_as(user, _WORDS, str(self._number), **self._environment(machine, nodes))
        except BaseException:
            self._open[user] -= 1
            raise
        entry = {"user": user, "machine": machine, "job": str(self._number), "address": address, "opened": time.time()}
        audit.note("terminal opened", user=user, machine=machine, job=entry["job"], address=address)
        return Terminal(process, entry, list(nodes))

    def _environment(self, machine, nodes):
        values = {**surroundings.of_provider(self._settings), "TERM": "xterm-256color", "PATH": f"{os.path.dirname(_HERE)}:{accounts.PATH}"}
        if machine:
            values.update(CLUSTER_MACHINE=machine, CLUSTER_NODES=",".join(nodes))
        return values

    async def close(self, terminal):
        """Ends all that was started in it, here and on the nodes of its machine."""
        entry = terminal.entry
        self._open[entry["user"]] -= 1
        await terminal.close()
        for end in (lambda: job_group.end(accounts.find(entry["user"]), entry["job"]),
                    lambda: self._cluster.end_job(entry["user"], entry["job"], terminal.nodes)):
            with contextlib.suppress(AgentError):
                await end()
        audit.note("terminal closed", user=entry["user"], machine=entry["machine"], job=entry["job"])
        self.past.add([{**entry, "closed": time.time()}])
