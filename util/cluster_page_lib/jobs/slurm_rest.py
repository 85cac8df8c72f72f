"""Jobs through slurmrestd, Slurm's daemon for HTTP and JSON, over its Unix socket: the page then runs none of Slurm's commands but
scontrol, for what this version of the interface (v0.0.38, Slurm 22.05 to 23.11) lacks: orders about nodes, and jobs on chosen nodes.

Each request carries a token of the user for whom it is made, so Slurm itself sees to what users may. The page signs tokens with the
key of slurmctld (AuthAltParameters=jwt_key=...); a token is valid for a minute.
"""
import asyncio
import base64
import hashlib
import hmac
import http.client
import json
import os
import pwd
import shlex
import socket
import time

from clusterd_lib import accounts
from clusterd_lib.errors import AgentError

from ..commands import run as _run
from . import home_output, surroundings
from .job import QUEUED, RUNNING, Job
from .slurm import FRESH_SECONDS, STATES, SlurmQueue, printable
from .slurm import FAILED as _FAILED

_INTERFACE = "/slurm/v0.0.38"
_TOKEN_SECONDS = 60
_ASK_SECONDS = 15
_ANSWER_BYTES_MAX = 256 << 20  # a job of one node has 10 KB


class _Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=_ASK_SECONDS)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def token(key, user, now):
    """A JSON Web Token (RFC 7519) as slurmctld takes it: HMAC with SHA-256, the user in `sun`."""
    def part(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    parts = [json.dumps(content, separators=(",", ":")).encode()
             for content in ({"alg": "HS256", "typ": "JWT"}, {"exp": int(now) + _TOKEN_SECONDS, "iat": int(now), "sun": user})]
    signed = b".".join(map(part, parts))
    return (signed + b"." + part(hmac.new(key, signed, hashlib.sha256).digest())).decode()


def _read_key(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise AgentError(f"--slurm-jwt-key {path}: {error.strerror}; this is the file that AuthAltParameters=jwt_key=... in "
                         "slurm.conf names") from error


def reason_of(status, said):
    """Why a request failed, as one line; empty if it did not."""
    errors = said.get("errors")
    if status == 200 and not errors:
        return ""
    first = errors[0] if errors and isinstance(errors[0], dict) else {}
    return printable(str(first.get("description") or first.get("error") or f"HTTP status {status}"))[:300]


def job_of(entry):
    state = STATES.get(entry["job_state"], _FAILED)
    is_open = state in (QUEUED, RUNNING)
    hosts = entry.get("job_resources", {}).get("allocated_nodes", [])
    return Job(str(int(entry["job_id"])), entry["user_name"], printable(entry["name"]), state, int(entry["node_count"]),
               int(entry.get("tasks") or 0), [printable(host["nodename"]) for host in hosts], entry["submit_time"],
               entry["start_time"] if state != QUEUED else 0.0, 0.0 if is_open else entry["end_time"],
               "" if entry["state_reason"] == "None" else printable(entry["state_reason"]),
               None if is_open else int(entry["exit_code"]) >> 8)


class SlurmRestQueue(SlurmQueue):
    title = "through Slurm (slurmrestd)"

    def __init__(self, settings):
        super().__init__(settings)
        self._key = _read_key(settings.slurm_jwt_key)

    def _exchange(self, user, method, path, content):
        head = {"X-SLURM-USER-NAME": user, "X-SLURM-USER-TOKEN": token(self._key, user, time.time())}
        body = None
        if content is not None:
            head["Content-Type"], body = "application/json", json.dumps(content)
        connection = _Connection(self._settings.slurmrestd)
        try:
            connection.request(method, _INTERFACE + path, body, head)
            answer = connection.getresponse()
            return answer.status, answer.read(_ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise AgentError(f"slurmrestd does not answer at {self._settings.slurmrestd}: {error}") from error
        finally:
            connection.close()

    async def _ask(self, user, method, path, content=None):
        status, text = await asyncio.to_thread(self._exchange, user, method, path, content)
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            said = {"errors": [{"error": text[:300].decode(errors="replace")}]}
        reason = reason_of(status, said)
        if reason:
            raise AgentError(f"slurmrestd: {reason}")
        return said

    async def submit(self, user, request):
        options = accounts.options(accounts.find(user))
        environment = {**options["env"], **surroundings.of_request(surroundings.of_provider(self._settings), request),
                       "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1", "SLURM_OVERCOMMIT": "1"}
        job = {"name": request.name, "nodes": str(request.nodes), "tasks": request.ranks,
               "tasks_per_node": -(-request.ranks // request.nodes), "time_limit": request.minutes,
               "current_working_directory": options["cwd"], "environment": environment,
               "standard_output": f"{options['cwd']}/{home_output.name_of('%j')}"}
        if request.on:
            job["begin_time"] = "now+10minutes"
        script = request.script or f"#!/bin/sh\nexec mpirun -np {request.ranks} {shlex.join(request.words)}\n"
        number = str((await self._ask(user, "POST", "/job/submit", {"job": job, "script": script}))["job_id"])
        if request.on:
            await self._place(user, number, request.on, options)
        self._asked_at = float("-inf")
        return number

    async def _place(self, user, number, nodes, options):
        """slurmrestd refuses lists of nodes, so the job waits until it has its own."""
        try:
            await _run("scontrol", "update", f"jobid={number}", f"reqnodelist={','.join(nodes)}", "starttime=now", **options)
        except AgentError:
            await self._ask(user, "DELETE", f"/job/{number}")
            raise

    @staticmethod
    def _own_name():
        return pwd.getpwuid(os.geteuid()).pw_name

    async def jobs(self):
        async with self._asking:
            if time.monotonic() - self._asked_at > FRESH_SECONDS:
                said = await self._ask(self._own_name(), "GET", "/jobs")
                self._jobs = sorted(map(job_of, said["jobs"]), key=lambda job: -int(job.number))
                self._asked_at = time.monotonic()
        return self._jobs

    async def job(self, number):
        return next((job for job in await self.jobs() if job.number == number), None)

    async def cancel(self, job, _by):
        """As its user: Slurm cancels no job of another."""
        await self._ask(job.user, "DELETE", f"/job/{job.number}")
        self._asked_at = float("-inf")
