"""Commands that users start on other nodes as themselves: as ssh does, but secured by the key of the cluster.

A user asks the agent of the user's own node (the kernel tells who it is), which asks the agent of the other node. Both
check the role. Only launchers of jobs use this: the command gets no input, its output is dropped, and the answer comes
when it has started, so no connection stays open while the job runs. A command may name the job of the user to which it
belongs; the page then ends all that the command has left, on every node of the job.
"""
import asyncio
import tempfile
from collections import Counter

from . import accounts, audit, job_group, roles
from .errors import AgentError

BEGIN_SECONDS = 0.3
END_SECONDS = job_group.END_SECONDS + 5
COMMAND_BYTES_MAX = 100_000
RUNNING_MAX = 256  # of one user


class Remote:
    def __init__(self, daemon):
        self._daemon, self._running = daemon, Counter()
        daemon.operations.add("run", self._run)
        daemon.operations.add("run-on", self._run_on, by_users=True)
        daemon.operations.add("end-job", self._end_job)
        daemon.operations.add("end-job-on", self._end_job_on, by_users=True)

    async def _run_on(self, caller, arguments):
        name = str(arguments["node"])
        request = {"user": caller.user, "command": str(arguments["command"]), "job": str(arguments.get("job", ""))}
        if name == self._daemon.settings.name:
            return await self._start(**request)
        self._need_submit(caller.user)
        return await self._daemon.ask_node(name, "run", request)

    async def _run(self, _caller, arguments):
        return await self._start(str(arguments["user"]), str(arguments["command"]), str(arguments.get("job", "")))

    async def _end_job(self, _caller, arguments):
        job = str(arguments["job"])
        if job_group.is_number(job):
            await job_group.end(accounts.find(str(arguments["user"])), job)

    async def _end_job_on(self, caller, arguments):
        """For the page, which runs as root: the nodes where processes of the job may be left."""
        if caller.uid != 0:
            raise AgentError("only root ends jobs on other nodes")
        names = [str(name) for name in arguments["nodes"]]
        request = {"user": str(arguments["user"]), "job": str(arguments["job"])}
        own = self._daemon.settings.name
        results = await asyncio.gather(*(
            self._end_job(caller, request) if name == own else self._daemon.ask_node(name, "end-job", request, END_SECONDS)
            for name in names), return_exceptions=True)
        return [name for name, result in zip(names, results) if isinstance(result, Exception)]

    def _need_submit(self, user):
        if self._daemon.roles.of(user) < roles.SUBMIT:
            raise AgentError(f"{user} may not run jobs: --submit of clusterd names the users who may")

    async def _start(self, user, command, job):
        self._need_submit(user)
        account = accounts.find(user)
        if len(command) > COMMAND_BYTES_MAX or self._running[user] >= RUNNING_MAX:
            raise AgentError(f"the command has more than {COMMAND_BYTES_MAX} bytes, or {RUNNING_MAX} commands of {user} are running")
        audit.note("command", user=user, job=job)
        self._running[user] += 1
        job = job if job_group.is_number(job) else ""
        environment = {job_group.VARIABLE: job} if job else {}
        with tempfile.TemporaryFile() as errors, job_group.started(account, job, ["/bin/sh", "-c", command], environment) as how:
            words, options = how
            try:
                process = await asyncio.create_subprocess_exec(
                    *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=errors, **options)
            except BaseException:
                self._running[user] -= 1
                raise
            ended = asyncio.ensure_future(process.wait())
            ended.add_done_callback(lambda _: self._running.subtract([user]))
            done, _ = await asyncio.wait({ended}, timeout=BEGIN_SECONDS)
            if done and ended.result() != 0:
                errors.seek(0)
                said = errors.read(4096).decode(errors="replace").strip().splitlines()
                raise AgentError(f"the command ended with status {ended.result()}: {said[-1] if said else 'it said nothing'}")
        return process.pid
