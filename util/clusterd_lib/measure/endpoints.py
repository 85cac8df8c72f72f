"""The reports of the provider's running endpoints on this node, read by `cluster-info --all --json` in a separate
process.

The agent queries endpoints every few seconds, and only while a person or a program looks somewhere, so that it does not
disturb other jobs. `--why` is used if the installed cluster-info offers it.

Any user can start a process that reports anything about its endpoints, or nothing for a while. The agent leaves out
malformed reports; they hide no other process. It does not wait for a new look for long: it answers from the latest.
"""
import asyncio
import contextlib
import json
import shutil
import time

from cluster_lib.ranks import job_of, owner_of
from cluster_why_lib import here

from .. import checked
from ..errors import AgentError
from .accounting import Accounting

SECONDS_MAX = 10
WAIT_SECONDS = 1.5  # cluster-info waits a second for answers
PAUSE_SECONDS = 1
BYTES_MAX = 16 << 20  # twice the length to which cluster-info shortens its report


def _sensible(process):
    """The report of a process, or a note in its place if the report is malformed."""
    try:
        for endpoint in checked.process(process)["endpoints"]:  # what is set, not what could be
            endpoint["options"] = [option for option in endpoint.get("options", []) if option.get("from") not in (None, "default")]
        return process
    except AgentError as error:
        return {"pid": process["pid"], "command": process["command"], "endpoints": [
            {"endpoint": {"endpoint": ""}, "trouble": str(error)}]}


class Endpoints:
    def __init__(self, program, node_of):
        self._program = program if program and shutil.which(program) else shutil.which("cluster-info")
        self._offers_why = None
        self.latest = {"processes": []}
        self._look, self._looked_at = None, float("-inf")
        self.accounting = Accounting(job_of, node_of, owner_of)

    @property
    def offers_why(self):
        return bool(self._offers_why)

    async def _run(self, *words):
        """What cluster-info prints; OSError if it takes too long or prints too much."""
        process = await asyncio.create_subprocess_exec(
            self._program, *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL)
        try:
            output = await asyncio.wait_for(self._read(process.stdout), SECONDS_MAX)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if isinstance(error, asyncio.TimeoutError):
                raise OSError("it takes too long") from error
            raise
        finally:
            await process.wait()
        return output.decode(errors="replace")

    @staticmethod
    async def _read(stream):
        output = bytearray()
        while piece := await stream.read(1 << 16):
            output += piece
            if len(output) > BYTES_MAX:
                raise OSError(f"it prints more than {BYTES_MAX >> 20} MB")
        return output

    async def refresh(self):
        """Looks anew if the latest look is old, and waits for it, but not long."""
        if self._look is None or self._look.done():
            if time.monotonic() - self._looked_at < PAUSE_SECONDS:
                return
            self._looked_at = time.monotonic()
            self._look = asyncio.ensure_future(self._look_now())
        await asyncio.wait({self._look}, timeout=WAIT_SECONDS)

    async def _look_now(self):
        if not self._program:
            self.latest = {"processes": [], "trouble": "cluster-info is not installed"}
            return
        try:
            latest = json.loads(await self._run("--all", "--json"))
        except (ValueError, OSError) as error:
            self.latest = {"processes": [], "trouble": f"cluster-info: {error}"}
            return
        latest["processes"] = [_sensible(process) for process in latest["processes"]]
        self.accounting.look(latest["processes"], time.monotonic())
        self.latest = latest

    async def ranks(self):
        """The processes of this node with endpoints, and ranks without, for cluster-why."""
        if not self._program:
            raise AgentError("cluster-info is not installed on this node")
        try:
            return await asyncio.to_thread(here.describe, await self._run(*here.question(self._program)[1:]))
        except (here.NoReport, OSError) as error:
            raise AgentError(str(error)) from error

    async def why(self):
        """In words, why operations of this node's processes wait."""
        if not self._program:
            return "cluster-info is not installed on this node"
        try:
            if self._offers_why is None:
                self._offers_why = "--why" in await self._run("--help")
            return await self._run("--why" if self._offers_why else "--all")
        except OSError as error:
            return f"cluster-info: {error}"
