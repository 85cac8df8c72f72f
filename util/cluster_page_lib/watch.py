"""What the page notes down while it runs: the events of the cluster, and what each job has used.

It looks often while a job is open, so that the last look is near the end of each job, and seldom otherwise. A job's
messages are counted from the endpoints that name the job; the agents let only its user name it (clusterd_lib/measure/
accounting.py). What an endpoint does after the last look is missed.
"""
import asyncio
import contextlib
import os
import time

from clusterd_lib.errors import AgentError
from clusterd_lib.status.text import way_to

from .archive import Archive

BUSY_SECONDS, IDLE_SECONDS = 2.0, 60.0
EVENTS_KEPT, JOBS_KEPT, EVENTS_ASKED = 20_000, 20_000, 1000


class Use:
    """What the endpoints of one job have sent and received, and by which paths they reach their peers."""

    def __init__(self):
        self._endpoints, self.paths = {}, {}

    def look(self, rows):
        if rows:
            self.paths = {}
        for row in rows:
            counters = row.get("counters", {})
            self._endpoints[row["node"], row["pid"], row["endpoint"]["endpoint"]] = (
                counters.get("bytes_sent", 0), counters.get("bytes_received", 0))
            for peer in row.get("peers", []):
                self.paths[way_to(peer)] = self.paths.get(way_to(peer), 0) + 1

    def facts(self):
        return {"sent": sum(sent for sent, _ in self._endpoints.values()), "received": sum(received for _, received in self._endpoints.values()),
                "paths": self.paths}


def account_of(job, queue):
    """The line of an ended job in the books, without its messages."""
    seconds = max(0.0, job.ended - job.started) if job.started and job.ended else 0.0
    return {"queue": queue, "number": job.number, "user": job.user, "name": job.name, "state": job.state, "status": job.status,
            "nodes": job.wanted, "ranks": job.ranks, "submitted": job.submitted, "started": job.started, "ended": job.ended,
            "node_seconds": seconds * job.wanted}


class Watch:
    def __init__(self, directory, cluster, queue):
        self._cluster, self._queue = cluster, queue
        self.events = Archive(os.path.join(directory, "events.jsonl"), EVENTS_KEPT)
        self.accounts = Archive(os.path.join(directory, "accounts.jsonl"), JOBS_KEPT)
        self._seen = {self._mark(event) for event in self.events.entries}
        self._booked = {self._key(entry) for entry in self.accounts.entries}
        self._uses, self._task, self._wake = {}, None, asyncio.Event()

    @staticmethod
    def _mark(event):
        return event["number"], event["at"]

    @staticmethod
    def _key(account):
        return account["queue"], account["number"], account["submitted"]

    def start(self):
        self._task = asyncio.ensure_future(self._again_and_again())

    async def stop(self):
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _again_and_again(self):
        while True:
            busy = False
            with contextlib.suppress(AgentError, OSError):  # the next look finds what this one has missed
                busy = await self.look()
            self._wake.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), BUSY_SECONDS if busy else IDLE_SECONDS)

    def wake(self):
        """A job has been submitted."""
        self._wake.set()

    async def look(self):
        """One look; returns whether a job is open."""
        await self._take_events()
        if self._queue is None:
            return False
        jobs = await self._queue.jobs()
        running = {job.number: job for job in jobs if job.is_open}
        if running:
            rows = (await self._cluster.status())["endpoints"]
            for number in running:
                self._uses.setdefault(number, Use()).look([row for row in rows if row.get("job") == number])
        self._book([job for job in jobs if not job.is_open])
        return bool(running)

    async def _take_events(self):
        found = (await self._cluster.ask("status", {"wait": False, "history": EVENTS_ASKED}))["history"]
        new = [event for event in reversed(found) if self._mark(event) not in self._seen]
        self._seen |= {self._mark(event) for event in new}
        self.events.add(new)

    def _book(self, ended):
        kind = self._queue.kind
        new = [{**account_of(job, kind), **self._uses.pop(job.number, Use()).facts()} for job in ended
               if (kind, job.number, job.submitted) not in self._booked]
        self._booked |= {self._key(entry) for entry in new}
        self.accounts.add(new)

    def use_of(self, job):
        """{sent, received, paths} of a job, running or ended; None if nothing is known."""
        if job.number in self._uses:
            return self._uses[job.number].facts()
        key = (self._queue.kind, job.number, job.submitted)
        return next((entry for entry in reversed(self.accounts.entries) if self._key(entry) == key), None) if key in self._booked else None

    def by_user(self, days=None):
        """(user, jobs, node seconds, bytes sent, bytes received) of the ended jobs of the last days, the greatest use first."""
        begin, found = (time.time() - days * 86400 if days else 0.0), {}
        for entry in self.accounts.entries:
            if entry["ended"] >= begin:
                row = found.setdefault(entry["user"], [0, 0.0, 0, 0])
                for place, value in enumerate((1, entry["node_seconds"], entry["sent"], entry["received"])):
                    row[place] += value
        return sorted(((user, *row) for user, row in found.items()), key=lambda row: -row[2])
