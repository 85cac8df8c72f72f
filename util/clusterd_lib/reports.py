"""The reports of other agents, fetched only while a person or a program looks.

Every look makes this agent fetch reports for a while. In a small cluster they are a second old at most; in a large one
each node is asked less often, so that this agent asks at most ASKED_PER_SECOND.
"""
import asyncio
import time

from . import checked
from .errors import AgentError

WATCHED_SECONDS = 15
ASKED_PER_SECOND = 50
ASKED_AT_ONCE = 16


class Reports:
    def __init__(self, ask, living):
        self._ask, self._living = ask, living
        self._latest = {}  # name -> (when, report)
        self._looked_at = float("-inf")
        self._wake = asyncio.Event()
        self._fresh = asyncio.Condition()

    def look(self):
        """Makes this agent go on fetching reports."""
        self._looked_at = time.monotonic()
        self._wake.set()

    @property
    def watched(self):
        return time.monotonic() - self._looked_at < WATCHED_SECONDS

    def latest(self, name):
        """The newest report of a node, and its age in seconds; None without one."""
        when, report = self._latest.get(name, (0, None))
        return report, time.monotonic() - when

    async def complete(self):
        """Returns when every living node has been asked once since now."""
        self.look()
        async with self._fresh:
            await self._fresh.wait()
            await self._fresh.wait()

    async def _fetch(self, name, address, gate):
        async with gate:
            try:
                self._latest[name] = (time.monotonic(), checked.report(await self._ask(name, address, "report", {}, 3), name))
            except AgentError:
                pass  # the detector decides whether it lives; without a key anyone can send a malformed report

    async def run(self):
        gate = asyncio.Semaphore(ASKED_AT_ONCE)
        while True:
            if not self.watched:
                self._wake.clear()
                await self._wake.wait()
            started = time.monotonic()
            nodes = self._living()
            await asyncio.gather(*(self._fetch(name, address, gate) for name, address in nodes))
            self._latest = {name: self._latest[name] for name, _ in nodes if name in self._latest}
            async with self._fresh:
                self._fresh.notify_all()
            pause = max(1.0, len(nodes) / ASKED_PER_SECOND) - (time.monotonic() - started)
            await asyncio.sleep(max(0.05, pause))
