"""Jobs through Slurm: sbatch as the user, squeue, scontrol and scancel. Slurm is asked at most once in FRESH_SECONDS.

Users choose the names of their jobs, and squeue prints names unchanged, even with line breaks. So a fresh random word,
which no user can guess, begins each job in the output. squeue gets it in its environment, which other users cannot
read. Slurm itself sets the user of a job; scancel gets the user too and cancels no job of another user.
"""
import asyncio
import os
import re
import secrets
import time

from clusterd_lib import accounts
from clusterd_lib.errors import AgentError

from ..commands import run as _run
from . import home_output, surroundings
from .job import CANCELLED, ENDED, FAILED, QUEUED, RUNNING, Job

FRESH_SECONDS = 0.8
_BATCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "batch.sh")
_FORMAT = "%i|{word}|%u|%T|%D|%C|%V|%S|%e|%r|%N|%j"  # the name comes last: it may contain any character
_FIELDS = 11
STATES = {"PENDING": QUEUED, "CONFIGURING": RUNNING, "RUNNING": RUNNING, "COMPLETING": RUNNING, "SUSPENDED": RUNNING,
           "COMPLETED": ENDED, "CANCELLED": CANCELLED}
_SLURM_ORDERS = {"drain": "drain", "isolate": "drain", "resume": "resume"}


def _at(text):
    """Slurm's time as seconds since 1970, 0 for none."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def printable(text):
    return "".join(character if character.isprintable() else "?" for character in text)


def _rows(said, word):
    """The fields of each job; `word` stands behind the number of each."""
    parts = re.split(rf"^([^|\n]+)\|{word}\|", said, flags=re.MULTILINE)
    for number, rest in zip(parts[1::2], parts[2::2]):
        fields = [number, *rest.split("|", _FIELDS - 2)]
        if number.isascii() and number.isdigit() and len(fields) == _FIELDS:
            yield fields


def _job_of(fields):
    number, user, state, nodes, _, submitted, started, ended, reason, where, name = fields
    name = printable(name.removesuffix("\n"))
    state = STATES.get(state, FAILED)
    ran = state != QUEUED
    return Job(number, user, name, state, int(nodes), 0, [where] if where else [], _at(submitted), _at(started) if ran else 0.0,
               _at(ended) if state not in (QUEUED, RUNNING) else 0.0, "" if reason == "None" else reason)


class SlurmQueue:
    title, kind = "through Slurm", "slurm"

    def __init__(self, settings):
        self._settings = settings
        self._jobs, self._asked_at, self._asking = [], float("-inf"), asyncio.Lock()
        self._ranks = {}  # of the jobs submitted here

    async def start(self):
        """Nothing to start: Slurm runs by itself."""

    async def stop(self):
        """Nothing to end: Slurm's jobs go on."""

    async def submit(self, user, request):
        account = accounts.find(user)
        options = accounts.options(account)
        environment = surroundings.of_request(surroundings.of_provider(self._settings), request)
        options["env"].update(environment, OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_mpi_yield_when_idle="1")
        words = ["sbatch", "--parsable", f"--job-name={request.name}", f"--nodes={request.nodes}", f"--ntasks={request.ranks}",
                 f"--ntasks-per-node={-(-request.ranks // request.nodes)}", "--overcommit", f"--time={request.minutes}",
                 f"--chdir={options['cwd']}", f"--output={options['cwd']}/{home_output.name_of('%j')}"]
        if request.on:
            words.append(f"--nodelist={','.join(request.on)}")
        if not request.script:
            words += [_BATCH, "-np", str(request.ranks), *request.words]
        number = (await _run(*words, stdin=request.script.encode(), **options)).decode().strip().partition(";")[0]
        if not number.isdigit():
            raise AgentError(f"sbatch said '{number[:80]}' in the place of a number")
        self._ranks[number] = request.ranks
        self._asked_at = float("-inf")
        return number

    async def jobs(self):
        async with self._asking:
            if time.monotonic() - self._asked_at > FRESH_SECONDS:
                word = secrets.token_hex(16)
                environment = {name: value for name, value in os.environ.items() if not name.startswith("SQUEUE_")}
                said = await _run("squeue", "--all", "--states=all", "--noheader",
                                  env={**environment, "SQUEUE_FORMAT": _FORMAT.format(word=word)})
                self._jobs = [_job_of(fields) for fields in _rows(said.decode(errors="replace"), word)]
                self._jobs.sort(key=lambda job: -int(job.number))
                for job in self._jobs:
                    job.ranks = self._ranks.get(job.number, 0)
                self._asked_at = time.monotonic()
        return self._jobs

    async def job(self, number):
        for job in await self.jobs():
            if job.number == number:
                if job.nodes and re.search(r"[\[,]", job.nodes[0]):
                    job.nodes = (await _run("scontrol", "show", "hostnames", job.nodes[0])).decode().split()
                if not job.is_open and job.status is None:
                    job.status = await self._status(number)
                return job
        return None

    @staticmethod
    async def _status(number):
        """With which the job has ended; None if Slurm has forgotten it."""
        try:
            said = (await _run("squeue", "--all", "--states=all", "--noheader", f"--jobs={number}", "--Format=exit_code:12")).decode().strip()
        except AgentError:
            return None
        return int(said) >> 8 if said.isascii() and said.isdigit() else None

    async def cancel(self, job, _by):
        """The page has checked the role."""
        await _run("scancel", f"--user={job.user}", job.number)
        self._asked_at = float("-inf")

    @staticmethod
    async def output(job, offset):
        return await home_output.piece(job, offset)

    async def order(self, node, order, reason):
        """Tells Slurm, which then gives no jobs to a node that is drained here."""
        words = ["scontrol", "update", f"nodename={node}", f"state={_SLURM_ORDERS[order]}"]
        await _run(*words, *([] if order == "resume" else [f"reason={reason or 'page'}"]))
