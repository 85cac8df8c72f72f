"""Jobs without Slurm: each gets nodes of its own, in the order of submission, and runs as its user under mpirun.

A node is free if it is up, neither drained nor isolated, and no job has it. Each job has a directory, which root can
read; the user can read the output. Jobs end with the page; jobs that a crash left open count as lost. When a job ends,
all its processes end on all its nodes, before another job gets these.
"""
import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import time
from subprocess import SubprocessError

from clusterd_lib import accounts, audit, job_group
from clusterd_lib.errors import AgentError
from clusterd_lib.protocol.wire import is_name

from . import surroundings
from .job import CANCELLED, ENDED, FAILED, LOST, QUEUED, RUNNING, Job

KEPT_MAX = 500
OPEN_OF_USER_MAX = 50
LOOK_SECONDS = 2.0
GRACE_SECONDS = 10.0
PIECE_BYTES = 64 << 10


class OwnQueue:
    title, kind = "mpirun, on nodes that are free", "own"

    def __init__(self, settings, cluster, mpirun="/usr/bin/mpirun"):
        self._directory = os.path.join(settings.state, "jobs")
        self._settings, self._cluster, self._mpirun = settings, cluster, mpirun
        self._jobs, self._requests, self._processes = {}, {}, {}
        self._wake, self._tasks = asyncio.Event(), set()

    # --- calls of the page

    async def submit(self, user, request):
        """The number of the new job."""
        account = accounts.find(user)
        if sum(job.user == user and job.is_open for job in self._jobs.values()) >= OPEN_OF_USER_MAX:
            raise AgentError(f"{OPEN_OF_USER_MAX} jobs of {user} wait or run already, which is the limit")
        number = str(max(map(int, self._jobs), default=0) + 1)
        self._write_files(number, account, request)
        job = Job(number, user, request.name, QUEUED, request.nodes, request.ranks, submitted=time.time())
        self._jobs[number], self._requests[number] = job, request
        self._save(job)
        self._wake.set()
        return number

    async def jobs(self):
        return sorted(self._jobs.values(), key=lambda job: -int(job.number))

    async def job(self, number):
        return self._jobs.get(number)

    async def cancel(self, job, by):
        if job.state == QUEUED:
            self._end(job, CANCELLED, f"cancelled by {by}")
        elif job.state == RUNNING and not job.reason:
            job.reason = f"cancelled by {by}"
            self._spawn(self._stop(job))

    async def output(self, job, offset):
        """(bytes from there on, where the next begin)"""
        with open(self._path(job.number, "output"), "rb") as file:
            file.seek(offset)
            piece = file.read(PIECE_BYTES)
        return piece, offset + len(piece)

    # --- start, run, end

    async def start(self):
        os.makedirs(self._directory, mode=0o711, exist_ok=True)
        for number in filter(str.isdigit, os.listdir(self._directory)):
            with contextlib.suppress(OSError, ValueError, TypeError), open(self._path(number, "job.json"), encoding="utf-8") as file:
                self._jobs[number] = Job(**json.load(file))
        for job in self._jobs.values():
            if job.is_open:
                self._end(job, LOST, "the page was ended while it was open")
                self._spawn(self._end_processes(job))
        self._spawn(self._place_again_and_again())

    async def stop(self):
        for task in list(self._tasks):
            task.cancel()
        for number in list(self._processes):
            await self._stop(self._jobs[number])
            self._end(self._jobs[number], LOST, "the page was ended" + await self._end_processes(self._jobs[number]))

    def _spawn(self, work):
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _path(self, number, name):
        return os.path.join(self._directory, number, name)

    def _write_files(self, number, account, request):
        os.mkdir(os.path.join(self._directory, number), 0o711)
        for name, text, mode in (("output", "", 0o600), ("script", request.script, 0o500)):
            with open(os.open(self._path(number, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
                file.write(text)
                os.fchown(file.fileno(), account.pw_uid, account.pw_gid)

    def _save(self, job):
        path = self._path(job.number, "job.json")
        with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(job), file)
        os.replace(path + ".new", path)

    def _end(self, job, state, reason):
        job.state, job.reason, job.ended = state, reason, time.time()
        audit.note("job over", user=job.user, job=job.number, state=state, reason=reason, nodes=job.nodes)
        self._requests.pop(job.number, None)
        self._save(job)
        self._wake.set()

    async def _place_again_and_again(self):
        """The oldest job starts first: none overtakes a job that waits for many nodes. A job that waits for nodes that its
        user has named holds only these."""
        while True:
            self._wake.clear()
            held = set()
            for job in sorted((job for job in self._jobs.values() if job.state == QUEUED), key=lambda job: int(job.number)):
                if job.number not in self._requests:
                    continue  # cancelled meanwhile
                named = self._requests[job.number].on
                if not await self._place(job, held, named):
                    if not named:
                        break
                    held.update(named)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wake.wait(), LOOK_SECONDS)

    async def _place(self, job, held, named):
        """Starts the job if enough nodes are free."""
        try:
            good = [node["name"] for node in (await self._cluster.status())["nodes"]
                    if node["state"] in ("up", "returned") and not node["order"] and is_name(node["name"])]  # a line of a hostfile
        except AgentError as error:
            job.reason = str(error)
            return False
        busy = {name for other in self._jobs.values() if other.state == RUNNING for name in other.nodes}
        free = [name for name in good if name not in busy and name not in held]
        missing = [name for name in named if name not in free]
        if job.state != QUEUED or missing or len(free) < job.wanted:
            job.reason = f"waits for {', '.join(missing)}" if missing else f"waits for {job.wanted} free nodes: {len(free)} of {len(good)} are"
            return False
        free = named or free
        job.nodes, job.state, job.started, job.reason = free[:job.wanted], RUNNING, time.time(), ""
        audit.note("job started", user=job.user, job=job.number, nodes=job.nodes)
        self._save(job)
        self._spawn(self._run(job, self._requests[job.number]))
        return True

    def _command(self, job, request):
        if request.script:
            return [self._path(job.number, "script")]
        return [self._mpirun, "-np", str(request.ranks), *request.words]

    def _environment(self, job, request):
        slots = -(-job.ranks // len(job.nodes))
        hostfile = self._path(job.number, "hosts")
        with open(hostfile, "w", encoding="utf-8") as file:
            file.write("".join(f"{name} slots={slots}\n" for name in job.nodes))
        os.chmod(hostfile, 0o644)
        return surroundings.of_request({
            **surroundings.of_provider(self._settings), **surroundings.of_agents(hostfile),
            "CLUSTER_JOB": job.number, "CLUSTER_NODES": ",".join(job.nodes), "CLUSTER_RANKS": str(job.ranks)}, request)

    async def _run(self, job, request):
        try:
            account = accounts.find(job.user)
            command, environment = self._command(job, request), self._environment(job, request)
            with open(self._path(job.number, "output"), "ab") as output, job_group.started(
                    account, job.number, command, environment, self._path(job.number, "environment")) as how:
                words, options = how
                process = await asyncio.create_subprocess_exec(
                    *words, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT, **options)
        except (OSError, SubprocessError, AgentError) as error:
            self._end(job, FAILED, f"it could not be started: {error}")
            return
        self._processes[job.number] = process
        try:
            status = await asyncio.wait_for(process.wait(), request.minutes * 60)
        except asyncio.TimeoutError:
            job.reason = f"ended after {request.minutes} minutes, as was asked"
            await self._stop(job)
            status = process.returncode
        left = await self._end_processes(job)
        job.status = status
        del self._processes[job.number]
        if job.reason:
            self._end(job, CANCELLED, job.reason + left)
        else:
            self._end(job, FAILED if status else ENDED, ((f"status {status}" if status else "") + left).strip())

    async def _end_processes(self, job):
        """Ends what the job has left on its nodes; a sentence if that fails."""
        left = []
        try:
            await job_group.end(accounts.find(job.user), job.number)
        except AgentError:
            left.append("the node of the page")
        try:
            left += await self._cluster.end_job(job.user, job.number, job.nodes)
        except AgentError:
            left += job.nodes
        return f" (processes of it may be left on {', '.join(left)})" if left else ""

    async def _stop(self, job):
        """Asks the job to end: mpirun ends its ranks on all nodes; most children of a script are in its process group."""
        process = self._processes.get(job.number)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process is None or process.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
