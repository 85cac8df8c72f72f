"""The relay of this node. It forwards sealed frames between endpoints that do not reach each other, for the jobs whose relay keys
the operator has given (fi_cluster_network(7), RELAYS). The program cluster-relay does the work. It gets the keys through a pipe and no
privilege, and ends with the agent. With relay keys nobody can open or forge frames."""
import asyncio
import contextlib
import json
import os
import pwd
import re
import time

from cluster_lib import build

from . import key as key_file
from .errors import AgentError

PROGRAM = "cluster-relay"
TOTALS = ("members", "frames", "bytes", "refused", "dropped")  # what the program counts
QUIET_SECONDS = 600  # the history does not say the same again for so long
_KEY = re.compile(r"[0-9a-fA-F]{64}")


def read_keys(path):
    """The lines of the file with relay keys, without comments: one job a line, with one or two keys."""
    text = key_file.read_private(path, "--relay").decode("ascii", "replace")
    lines = [" ".join(line.partition("#")[0].split()) for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines or not all(_KEY.fullmatch(word) for line in lines for word in line.split()):
        raise AgentError(f"--relay {path}: a line for each job is needed, with one or two relay keys (cluster-key --relay prints one)")
    return lines


class Relay:
    def __init__(self, settings, history):
        self._lines = read_keys(settings.relay) if settings.relay else []
        self._name, self._rate, self._history = settings.name, settings.relay_rate, history
        self._said = {}  # when the history was told what
        self._addresses, self._totals = [], {}
        if self._lines and build.missing([PROGRAM]):
            raise AgentError(f"--relay: {build.advice(PROGRAM)}")

    def _say(self, text):
        now = time.monotonic()
        self._said = {said: at for said, at in self._said.items() if now < at + QUIET_SECONDS}
        if text not in self._said:
            self._said[text] = now
            self._history.add("relay", self._name, text)

    def report(self):
        """What the relay has done since it began; None if this node is no relay."""
        totals = {name: self._totals.get(name, 0) for name in TOTALS}
        return {"addresses": self._addresses, **totals} if self._addresses else None

    async def _read_totals(self, stream):
        async for line in stream:
            with contextlib.suppress(ValueError):
                self._totals = json.loads(line)

    async def run(self):
        """Until the program ends, which it should not do; forever without keys."""
        if not self._lines:
            await asyncio.Event().wait()
        process = await asyncio.create_subprocess_exec(
            build.path(PROGRAM), "--rate", str(self._rate), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, **_without_privilege())
        reader = None
        try:
            with contextlib.suppress(ConnectionError):  # it has ended already, and has said why
                process.stdin.write(("\n".join(self._lines) + "\n\n").encode())
                await process.stdin.drain()
            addresses = []
            while line := (await process.stdout.readline()).decode().strip():
                addresses.append(line)
            if addresses:
                self._say(f"forwards frames at {', '.join(addresses)}")
            self._addresses, self._totals = addresses, {}
            reader = asyncio.ensure_future(self._read_totals(process.stdout))
            said = "no word"
            async for line in process.stderr:
                said = line.decode("utf-8", "replace").strip().removeprefix(f"{PROGRAM}: ")
                if addresses:
                    self._say(said)
            self._say(f"has ended with status {await process.wait()}: {said}")
        finally:
            self._addresses = []
            if reader is not None:
                reader.cancel()
            if process.returncode is None:
                process.kill()
                await process.wait()


def _without_privilege():
    """The program needs none: its port is above 1023."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
