"""Commands that the page runs, most of them as its users; no shell reads their words.

`run_as` runs one as a user of the page, outside of the restrictions of the service: it reads and writes what this user
may, and nothing else.
"""
import asyncio
import contextlib

from clusterd_lib import accounts, job_group
from clusterd_lib.errors import AgentError

ASK_SECONDS = 15
_ERROR_MAX = 300


def reason_of(errors, status):
    """The last line that a command said, as one line of text."""
    lines = errors.decode(errors="replace").strip().splitlines()
    text = lines[-1][:_ERROR_MAX] if lines else f"status {status}"
    return "".join(character if character.isprintable() else "?" for character in text)


async def _result(process, name, stdin):
    try:
        said, errors = await asyncio.wait_for(process.communicate(stdin), ASK_SECONDS)
    except asyncio.TimeoutError as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise AgentError(f"{name} does not answer") from error
    if process.returncode:
        raise AgentError(f"{name}: {reason_of(errors, process.returncode)}")
    return said


async def run(*words, stdin=b"", **options):
    """The output of a command; raises AgentError with its error message."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, **options)
    except FileNotFoundError as error:
        raise AgentError(f"{words[0]} is not installed") from error
    return await _result(process, words[0], stdin)


async def started_as(user, words, job="", **environment):
    """A process of this user with pipes; `job`: the number of a job to which it belongs."""
    with job_group.started(accounts.find(user), job, list(words), environment) as how:
        line, options = how
        try:
            return await asyncio.create_subprocess_exec(
                *line, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, **options)
        except (OSError, ValueError) as error:
            raise AgentError(f"{words[0]} could not be started: {error}") from error


async def run_as(user, *words, stdin=b"", name=""):
    """The same as `run`, as this user. `name`: what an error message calls the command."""
    return await _result(await started_as(user, words), name or words[0], stdin)
