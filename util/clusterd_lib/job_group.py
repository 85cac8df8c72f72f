"""The processes of a job on this node. All of them end with the job, also those in a session of their own.

A job has a control group (cgroup, version 2) below that of this process, which no process leaves without root. Where
this process may make none, the job's processes are those of its user whose environment names the job; a program that
changes its environment escapes then.
"""
import asyncio
import contextlib
import os
import re
import signal

from .errors import AgentError

VARIABLE = "CLUSTER_JOB"
END_SECONDS = 5.0
_LOOK_SECONDS = 0.02
_NUMBER = re.compile("[0-9]{1,15}")


def is_number(job):
    return _NUMBER.fullmatch(job) is not None


def _place():
    """The directory of this process's cgroup; None without version 2."""
    try:
        with open("/proc/self/mounts", encoding="utf-8") as file:
            mounted = next((line.split()[1] for line in file if line.split()[2] == "cgroup2"), None)
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next((line.strip()[3:] for line in file if line.startswith("0::")), None)
    except OSError:
        return None
    return os.path.join(mounted, own.lstrip("/")) if mounted and own else None


def _prefix():
    return f"cluster-job-{os.getpid()}-"


def _path(account, job):
    place = _place()
    return place and os.path.join(place, f"{_prefix()}{account.pw_uid}-{job}")


def _remove_empty_ones(place):
    for name in os.listdir(place):
        if name.startswith(_prefix()):
            with contextlib.suppress(OSError):  # it is in use
                os.rmdir(os.path.join(place, name))


@contextlib.contextmanager
def joined(account, job):
    """Arguments of subprocess.Popen by which a process begins in the group of its job. It has to start before anything
    else is awaited."""
    path = _path(account, job)
    try:
        if path:
            _remove_empty_ones(os.path.dirname(path))
            os.makedirs(path, exist_ok=True)
        entry = os.open(os.path.join(path, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC) if path else None
    except OSError:
        entry = None  # not ours to write: the environment has to do
    try:
        yield {"preexec_fn": lambda: os.write(entry, b"0")} if entry is not None else {}
    finally:
        if entry is not None:
            os.close(entry)


def _kill_group(path):
    """Returns whether the group is gone."""
    try:
        with open(os.path.join(path, "cgroup.kill"), "w", encoding="ascii") as file:
            file.write("1")
    except OSError:  # before Linux 5.14
        with contextlib.suppress(OSError), open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
            for number in file.read().split():
                with contextlib.suppress(OSError):
                    os.kill(int(number), signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.exists(path)


def _kill_named(user, job):
    """Returns whether no process was found."""
    mark, found = f"{VARIABLE}={job}".encode(), False
    for number in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{number}").st_uid != user:
                continue
            handle = os.pidfd_open(int(number))  # first, so that it is the process whose environment is read
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found = True
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)
    return not found


async def end(account, job):
    """Ends all processes of the job here; AgentError if some are left after a while."""
    path = _path(account, job)
    for _ in range(round(END_SECONDS / _LOOK_SECONDS)):
        if _kill_group(path) if path and os.path.isdir(path) else _kill_named(account.pw_uid, job):
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise AgentError(f"processes of job {job} do not end")
