"""The knowledge of this node's agent. However many users look, the page asks the agent at most once in
FRESH_SECONDS."""
import asyncio
import pwd
import time

from cluster_why_lib import answer, collect, jobs
from clusterd_lib import query
from clusterd_lib.errors import AgentError

FRESH_SECONDS = 0.3
HISTORY = 40


class Cluster:
    """`ask(operation, arguments)` may block; it runs in a thread. Raises AgentError if the agent does not answer."""

    def __init__(self, ask=query.ask_locally):
        self._ask = ask
        self._latest, self._asked_at = None, float("-inf")
        self._asking = asyncio.Lock()

    async def ask(self, operation, arguments=None):
        return await asyncio.to_thread(self._ask, operation, arguments or {})

    async def status(self):
        async with self._asking:
            if time.monotonic() - self._asked_at > FRESH_SECONDS:
                self._latest = await self.ask("status", {"wait": False, "history": HISTORY})
                self._asked_at = time.monotonic()
            return self._latest

    async def node(self, name):
        """The entry of a node; AgentError if there is none."""
        for entry in (await self.status())["nodes"]:
            if entry["name"] == name:
                return entry
        raise AgentError(f"{name} is unknown")

    async def series(self, name):
        return await self.ask("series", {"node": name})

    async def why(self, name):
        return await self.ask("why", {"node": name})

    async def end_job(self, user, job, nodes):
        """The nodes where processes of the job may be left."""
        return await self.ask("end-job-on", {"user": user, "job": job, "nodes": nodes})

    async def why_job(self, number, user):
        """The lines of cluster-why about a job; the first one names the culprit."""
        def explained():
            try:
                uid = pwd.getpwnam(user).pw_uid
                return answer.explain_called(collect.by_agents(lambda: self._ask("ranks", {})), number, uid).lines()
            except (KeyError, jobs.NoJob):
                return ["No process of this job has an endpoint of the provider."]

        return await asyncio.to_thread(explained)

    async def order(self, user, name, order, reason):
        self._asked_at = float("-inf")
        return await self.ask("order", {"by": user, "node": name, "order": order, "reason": reason})
