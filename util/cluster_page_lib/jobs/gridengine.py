"""Jobs through Grid Engine: qsub as the user, qstat, qacct, and qdel as the user. It is asked at most once in FRESH_SECONDS.

A job asks for nodes in the parallel environment `cluster`, which gives each job one slot on each of its nodes. Open MPI's
mpirun finds the nodes by itself and starts its daemons through Grid Engine (qrsh -inherit).

qstat knows jobs that wait or run; of ended ones qacct knows what this page has submitted. Users name their jobs: names have
no line breaks, Grid Engine sees to that, and whatever else they have is made harmless before the XML is read.
"""
import asyncio
import os
import re
import secrets
import time
from xml.etree import ElementTree

from clusterd_lib import accounts
from clusterd_lib.errors import AgentError

from ..commands import run as _run
from ..commands import run_as as _run_as
from . import home_output, surroundings
from .job import CANCELLED, ENDED, FAILED, LOST, QUEUED, RUNNING, Job

FRESH_SECONDS = 0.8
FORGOTTEN_SECONDS = 30.0  # an ended job of which qacct then knows nothing has left no account
KNOWN_MAX = 500
_BATCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "batch.sh")
_ORDERS = {"drain": "-d", "isolate": "-d", "resume": "-e"}
_CLEAN = {**os.environ, "LC_ALL": "C"}


def called(name):
    """The name under which Grid Engine knows a job: it allows no blanks, and a letter comes first."""
    return "j_" * (not name[0].isalpha()) + re.sub(r"[^A-Za-z0-9._+-]", "_", name)


def _at(text, form="%Y-%m-%dT%H:%M:%S"):
    try:
        return time.mktime(time.strptime(text.strip(), form))
    except (ValueError, AttributeError):
        return 0.0


def open_jobs(xml):
    """Number -> job, of what `qstat -g t -xml` says: a running job has an entry for each of its nodes."""
    text = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]", "?", xml.decode(errors="replace"))
    found = {}
    try:
        entries = ElementTree.fromstring(text).iter("job_list")
        for entry in entries:
            number, owner = entry.findtext("JB_job_number", ""), entry.findtext("JB_owner", "")
            if not (number.isascii() and number.isdigit()):
                continue
            state = RUNNING if set(entry.findtext("state", "")) & set("rtsST") else QUEUED
            started = _at(entry.findtext("JAT_start_time"))
            job = found.setdefault(number, Job(number, owner, entry.findtext("JB_name", ""), state, 0, 0,
                                               submitted=_at(entry.findtext("JB_submission_time")) or started, started=started))
            node = entry.findtext("queue_name", "").partition("@")[2]
            if node and node not in job.nodes:
                job.nodes.append(node)
            slots = entry.findtext("slots", "")
            job.wanted = max(job.wanted, len(job.nodes), int(slots) if slots.isdigit() and state == QUEUED else 0)
            if "E" in entry.findtext("state", ""):
                job.reason = 'Grid Engine could not start it: "qstat -j" says why'
    except ElementTree.ParseError as error:
        raise AgentError(f"qstat's answer cannot be read: {error}") from error
    return found


def account(text):
    """The newest entry of a job that qacct has, as a table."""
    found = {}
    for line in re.split(r"^=+$", text, flags=re.MULTILINE)[-1].splitlines():
        key, _, value = line.partition(" ")
        found.setdefault(key, value.strip())
    return found


class GridEngineQueue:
    title, kind = "through Grid Engine", "gridengine"
    called = staticmethod(called)

    def __init__(self, settings):
        self._settings = settings
        self._jobs, self._asked_at, self._asking = {}, float("-inf"), asyncio.Lock()
        self._mine, self._ended, self._cancelled, self._gone = {}, {}, set(), {}  # by number

    async def start(self):
        """What this page has submitted before (records.py) stays known."""
        records = os.path.join(self._settings.state, "records")
        names = os.listdir(records) if os.path.isdir(records) else []
        numbers = [name[len(self.kind) + 1:-len(".json")] for name in names if name.startswith(self.kind + "-")]
        for number in sorted(filter(str.isdigit, numbers), key=int)[-KNOWN_MAX:]:
            self._mine[number] = None

    async def stop(self):
        """Nothing to end: Grid Engine's jobs go on."""

    async def submit(self, user, request):
        options = accounts.options(accounts.find(user))
        environment = surroundings.of_request(surroundings.of_provider(self._settings), request)
        options["env"].update(environment, OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_rmaps_base_oversubscribe="1",
                              OMPI_MCA_mpi_yield_when_idle="1")
        words = ["qsub", "-terse", "-V", "-S", "/bin/sh", "-N", called(request.name), "-j", "y", "-wd", options["cwd"],
                 "-o", f"{options['cwd']}/{home_output.name_of('$JOB_ID')}", "-pe", "cluster", str(request.nodes),
                 "-l", f"h_rt={request.minutes * 60}"]
        if request.on:
            words += ["-l", f"hostname={'|'.join(request.on)}"]
        if not request.script:
            words += [_BATCH, "-np", str(request.ranks), *request.words]
        number = (await _run(*words, stdin=_wrapped(request.script) if request.script else b"", **options)).decode().strip()
        if not number.isdigit():
            raise AgentError(f"qsub said '{number[:80]}' in the place of a number")
        self._mine[number] = Job(number, user, called(request.name), QUEUED, request.nodes, request.ranks, submitted=time.time())
        self._asked_at = float("-inf")
        return number

    async def jobs(self):
        async with self._asking:
            if time.monotonic() - self._asked_at > FRESH_SECONDS:
                found = open_jobs(await _run("qstat", "-u", "*", "-g", "t", "-xml", env=_CLEAN))
                for number in [number for number in self._mine if number not in found and number not in self._ended]:
                    await self._look_for_end(number)
                for number, job in self._mine.items():
                    if number in found and job:
                        found[number].ranks, found[number].wanted, found[number].submitted = job.ranks, job.wanted, job.submitted
                        self._mine[number] = found[number]
                waiting = {number: job for number, job in self._mine.items() if job and number not in self._ended}
                self._jobs = {**waiting, **found, **self._ended}
                self._asked_at = time.monotonic()
        return sorted(self._jobs.values(), key=lambda job: -int(job.number))

    async def _look_for_end(self, number):
        """qstat has lost it: qacct knows how it ended, after a while."""
        try:
            entry = account((await _run("qacct", "-j", number, env=_CLEAN)).decode(errors="replace"))
        except AgentError:
            entry = {}
        job = self._mine[number]
        if entry.get("jobnumber") == number:
            self._ended[number] = self._of_account(entry, job)
        elif job is None or number in self._cancelled or \
                time.monotonic() - self._gone.setdefault(number, time.monotonic()) > FORGOTTEN_SECONDS:
            job = job or Job(number, "", "", LOST, 0, 0)
            job.state, job.ended = CANCELLED if number in self._cancelled else LOST, time.time()
            self._ended[number] = job

    def _of_account(self, entry, job):
        form = "%a %b %d %H:%M:%S %Y"
        status = int(entry["exit_status"]) if entry.get("exit_status", "").isdigit() else None
        failed = entry.get("failed", "0").split(" ", 1)[0] != "0"
        state = CANCELLED if entry["jobnumber"] in self._cancelled else FAILED if status or failed else ENDED
        slots = entry.get("slots", "")
        return Job(entry["jobnumber"], entry.get("owner", ""), entry.get("jobname", ""), state, int(slots) if slots.isdigit() else 1,
                   job.ranks if job else 0, job.nodes if job else [entry.get("hostname", "")],
                   job.submitted if job else _at(entry.get("qsub_time"), form), _at(entry.get("start_time"), form), _at(entry.get("end_time"), form),
                   entry["failed"].strip() if failed else "", status)

    async def job(self, number):
        return next((job for job in await self.jobs() if job.number == number), None)

    async def cancel(self, job, _by):
        """As its user: Grid Engine cancels no job of another."""
        self._cancelled.add(job.number)
        await _run_as(job.user, "qdel", job.number)
        self._asked_at = float("-inf")

    @staticmethod
    async def output(job, offset):
        return await home_output.piece(job, offset)

    @staticmethod
    async def order(node, order, _reason):
        """Tells Grid Engine, which then gives no jobs to a node that is drained here."""
        await _run("qmod", _ORDERS[order], f"*@{node}", env=_CLEAN)


def _wrapped(script):
    """A job of Grid Engine is a script of one shell; this one starts the user's with the interpreter of its first line."""
    end = f"end-{secrets.token_hex(16)}"
    return (f"#!/bin/sh\nf=$(mktemp) || exit 1\ncat >\"$f\" <<'{end}'\n{script}\n{end}\n"
            "chmod 700 \"$f\"\n\"$f\"\ns=$?\nrm -f \"$f\"\nexit $s\n").encode()
