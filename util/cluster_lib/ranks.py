"""What a launcher told a process about its job, and what the kernel shows about the process. All of it comes from /proc.

A process can write anything into its environment, so names lose what is not printable.
"""
import os
import socket
from typing import NamedTuple

# Launchers' names for a job, the widest first. The last one is that of `vcluster mpirun`.
_JOBS = (b"SLURM_JOB_ID", b"CLUSTER_JOB", b"PMIX_NAMESPACE", b"PMI_JOBID", b"VCLUSTER_JOB")
_RANKS = (b"OMPI_COMM_WORLD_RANK", b"PMIX_RANK", b"PMI_RANK", b"SLURM_PROCID")
_SIZES = (b"OMPI_COMM_WORLD_SIZE", b"PMI_SIZE", b"SLURM_NTASKS")
_ENVIRONMENT_MAX = 1 << 20
_ANCESTORS_MAX = 32
_NAME_MAX = 64


def printable(text):
    return "".join(character if character.isprintable() else "?" for character in text)[:_NAME_MAX]


def _read(pid, name, limit=1 << 16):
    """The bytes of a file of a process; none if it has ended or belongs to another user."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(limit)
    except OSError:
        return b""


class Told(NamedTuple):
    """What the environment of a process says."""
    job: str  # empty without a launcher
    rank: int  # -1: unknown
    size: int  # number of ranks; 0: unknown
    node: str  # of a virtual node; else empty


def _number(values, names, default):
    digits = next((values[name] for name in names if values.get(name)), b"")
    return int(digits) if digits.isdigit() and len(digits) < 10 else default


def told(pid):
    values = dict(entry.partition(b"=")[::2] for entry in _read(pid, "environ", _ENVIRONMENT_MAX).split(b"\0"))
    text = next((values[name].decode(errors="replace") for name in _JOBS if values.get(name)), "")
    return Told(printable(text), _number(values, _RANKS, -1), _number(values, _SIZES, 0),
                printable(values.get(b"VCLUSTER_NODE", b"").decode(errors="replace")))


def job_of(pid):
    """The job that started a process, by its environment; empty without one."""
    return told(pid).job


def owner_of(pid):
    """The user that started a process; None if it has ended."""
    return next((int(line.split()[1]) for line in _read(pid, "status").splitlines() if line.startswith(b"Uid:")), None)


def tracer_of(pid):
    """The debugger of a process; 0 without one."""
    return next((int(line.split()[1]) for line in _read(pid, "status").splitlines() if line.startswith(b"TracerPid:")), 0)


class Seen(NamedTuple):
    """What the kernel says about a process."""
    command: str
    state: str  # R, S, D, T (stopped), t (stopped by a debugger), Z; empty: it has ended
    parent: int
    stop_signal: int  # that stopped it; 0: none, or unknown
    sleeps_in: str  # the function of the kernel in which its main thread sleeps


def seen(pid):
    text = _read(pid, "stat").decode(errors="replace")
    begin, end = text.find("("), text.rfind(")")  # the command may contain brackets
    words = text[end + 1:].split()
    if begin < 0 or len(words) < 50:
        return Seen("", "", 0, 0, "")
    stopped = words[0] in "Tt"
    sleeps = _read(pid, "wchan").decode(errors="replace")
    return Seen(printable(text[begin + 1:end]), words[0], int(words[1]), int(words[49]) if stopped else 0,
                printable(sleeps) if sleeps.strip("0") and not stopped else "")


def ancestors(pid):
    """Parent, its parent, and so on."""
    found = []
    while len(found) < _ANCESTORS_MAX and (pid := seen(pid).parent) > 0:
        found.append(pid)
    return found


def command_line(pid):
    return [word.decode(errors="replace") for word in _read(pid, "cmdline").split(b"\0")]


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def network_of(pid):
    """Identifies the network namespace of a process; empty if this process may not see it."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def host():
    """The name of this node, without its domain."""
    return os.environ.get("VCLUSTER_NODE") or socket.gethostname().partition(".")[0]
