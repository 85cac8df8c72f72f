"""The processes of a job on this node. All of them end with the job, also those in a session of their own.

Where the unit of this service says so, systemd starts each process of a job as a unit of its own, outside of the
restrictions of the service, and ends it. Elsewhere a job has a control group (cgroup, version 2) below that of this
process. No process leaves either without root. Where this process may make no group, the job's processes are those of
its user whose environment names the job; a program that changes its environment escapes then.
"""
import asyncio
import contextlib
import os
import re
import secrets
import signal

from . import accounts
from .errors import AgentError

VARIABLE = "CLUSTER_JOB"
END_SECONDS = 5.0
_STOP_SECONDS = 5  # until systemd kills what does not end by itself
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


def _by_systemd():
    return os.environ.get("CLUSTER_JOBS_BY_SYSTEMD") == "yes"


def _unit(account, job):
    return f"cluster-job-{account.pw_uid}-{job or 'none'}-"


def _quoted(text):
    """A value in a file of variables of systemd."""
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def _started_by_systemd(account, job, words, options, environment_file):
    words = [word.replace("$", "$$") for word in words]  # systemd puts variables into words
    if environment_file:
        # Every user may ask systemd for the variables of a unit, but not for what is in a file.
        with open(os.open(environment_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write("".join(f"{name}={_quoted(value)}\n" for name, value in options["env"].items()))
        settings = [f"--property=EnvironmentFile={environment_file}"]
    else:
        settings = [f"--setenv={name}={value}" for name, value in options["env"].items()]
        settings.append("--property=ExitType=cgroup")  # the command may have left a process in the background
    return ["systemd-run", "--quiet", "--collect", "--wait", "--pipe", "--service-type=exec",
            f"--unit={_unit(account, job)}{secrets.token_hex(8)}", f"--uid={account.pw_name}", f"--gid={account.pw_gid}",
            f"--working-directory={options['cwd']}", "--property=UMask=0077", f"--property=TimeoutStopSec={_STOP_SECONDS}",
            *settings, "--", *words], {"start_new_session": True}


@contextlib.contextmanager
def started(account, job, words, environment, environment_file=""):
    """The words and arguments of subprocess.Popen that start a program as a process of a job of this account. It has to
    start before anything else is awaited. With an `environment_file`, which this writes, the program ends with its first
    process; without, when all its processes have ended."""
    options = accounts.options(account, **environment)
    if _by_systemd():
        yield _started_by_systemd(account, job, words, options, environment_file)
        return
    with _joined(account, job) if job else contextlib.nullcontext({}) as more:
        yield words, {**options, **more}


@contextlib.contextmanager
def _joined(account, job):
    """Arguments of subprocess.Popen by which a process begins in the group of its job."""
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
    if _by_systemd():
        process = await asyncio.create_subprocess_exec("systemctl", "stop", "--quiet", f"{_unit(account, job)}*.service",
                                                       stdin=asyncio.subprocess.DEVNULL)
        if await process.wait():
            raise AgentError(f"processes of job {job} do not end")
        return
    path = _path(account, job)
    for _ in range(round(END_SECONDS / _LOOK_SECONDS)):
        if _kill_group(path) if path and os.path.isdir(path) else _kill_named(account.pw_uid, job):
            return
        await asyncio.sleep(_LOOK_SECONDS)
    raise AgentError(f"processes of job {job} do not end")
