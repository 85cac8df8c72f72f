"""Runs mpirun over the nodes: a launch agent, in place of ssh, starts one daemon per node."""
import contextlib
import ctypes
import os
import signal
import time
import uuid

from cluster_lib import job_key

from . import namespaces, processes, state
from .errors import VclusterError

_PR_SET_PDEATHSIG = 1
_ABORT_GRACE_SECONDS = 10.0


def _exec_mpirun(record, holder, line, job, old_mask, parent, additions):
    """In the child: enters the first node and becomes mpirun. Never returns."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
        namespaces.enter(holder)
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        values = {**state.environment(record, holder, job), **additions}
        os.execvpe(line[0], line, {name: value for name, value in values.items() if value is not None})
    except VclusterError as error:
        os.write(2, f"vcluster: {error}\n".encode())
    except OSError as error:
        os.write(2, f"vcluster: cannot start {line[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _watch(child):
    """Waits for mpirun and forwards signals; returns its exit status as a shell would."""
    deadline = None
    watched = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if deadline and time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)  # our own unreaped child: the kernel cannot have reused the number
            deadline = None
        information = signal.sigtimedwait(watched, 1.0)
        if information is None or information.si_signo == signal.SIGCHLD:
            continue
        deadline = deadline or time.monotonic() + _ABORT_GRACE_SECONDS
        # si_code > 0: the terminal sent it to the whole foreground group, so mpirun has it already.
        if information.si_code <= 0:
            os.kill(child, information.si_signo)


@contextlib.contextmanager
def _key_of(record, job):
    """Keeps a file with the key of the job while the job runs; yields the job's environment variables for it."""
    base = state.directory(record["name"])
    secret, path = os.path.join(base, "secret"), os.path.join(base, f"{job}.key")
    if not os.path.exists(secret):
        job_key.make_secret(secret)
    job_key.write_private(path, job_key.derive(job_key.read_secret(secret), job_key.job_name(job)))
    try:
        yield {"FI_CLUSTER_KEY_FILE": path, "FI_CLUSTER_KEY": None}
    finally:
        os.unlink(path)


def run(record, launcher, words, slots, chosen, keyed=False, collectives=False):
    """Runs mpirun in the first chosen node, then removes everything that is left of the job."""
    job = str(uuid.uuid4())
    with _key_of(record, job) if keyed else contextlib.nullcontext({}) as additions:
        return _run(record, launcher.command(record, words, slots, chosen), (chosen or record["nodes"])[0], job,
                    {**launcher.environment, **launcher.parameters(words), **additions, **(launcher.collectives() if collectives else {})})


def _run(record, line, holder, job, additions):
    parent = os.getpid()
    old_mask = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        _exec_mpirun(record, holder, line, job, old_mask, parent, additions)
    status = _watch(child)
    left = processes.end_all(lambda pid: processes.has_mark(pid, "VCLUSTER_JOB", job), grace=2.0)
    if left:
        raise VclusterError(f"{left} processes of the job do not end")
    return status


def agent(record, words):
    """Launchers call this in place of ssh: [OPTIONS] NODE COMMAND... It joins the words for a shell, as ssh does."""
    while words and words[0].startswith("-"):
        words = words[1:]
    if not words:
        raise VclusterError("agent: no node given")
    holder = state.node(record, words[0])
    text = " ".join(words[1:])
    environment = state.environment(record, holder)
    namespaces.enter(holder)
    os.execve("/bin/sh", ["sh", "-c", text], environment)
