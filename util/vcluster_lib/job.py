"""mpirun over the nodes: one daemon per node, brought there by a launch agent in the place of ssh."""
import ctypes
import os
import signal
import time
import uuid

from . import namespaces, processes, state
from .errors import VclusterError

# Options of mpirun that are followed by a value; the first word that is neither is the program.
_ONE_VALUE = {
    "-x", "-n", "-np", "-c", "-N", "-H", "-host", "-hostfile", "-machinefile", "-bind-to", "-map-by", "-rank-by",
    "-npernode", "-npersocket", "-wdir", "-wd", "-path", "-rf", "-rankfile", "-cpu-set", "-cpu-list", "-tune", "-am",
    "-output-filename", "-prefix", "-timeout", "-max-restarts", "-stdin", "-report-uri", "-launch-agent",
    "-default-hostfile", "-ppr", "-personality", "-preload-files", "-app", "-aborted", "-xterm", "-tmpdir",
    "-mpi-thread", "-dvm", "-ompi-server", "-pernode-value", "-xml-file"}
_TWO_VALUES = {"-mca", "-gmca"}
_COUNT = {"-n", "-np", "-c"}
_PLACE = {"-H", "-host", "-hostfile", "-machinefile", "-default-hostfile", "-rf", "-rankfile"}
_BIND = {"-bind-to", "-bind-to-core", "-bind-to-socket", "-rf", "-rankfile", "-cpu-set", "-cpu-list"}
_PR_SET_PDEATHSIG = 1
_ABORT_GRACE_SECONDS = 10.0


def option_length(word):
    """How many words an option of mpirun takes, itself included."""
    option = "-" + word.lstrip("-")
    return 3 if option in _TWO_VALUES else 2 if option in _ONE_VALUE else 1


class _Request:
    """What the user's own mpirun options already decide."""

    def __init__(self, words):
        self.count, self.places, self.binds, self.parameters = None, False, False, set()
        position = 0
        while position < len(words) and words[position].startswith("-"):
            option = "-" + words[position].lstrip("-")
            values = words[position + 1:position + 3]
            if option in _COUNT and values and values[0].isdigit():
                self.count = int(values[0])
            self.places = self.places or option in _PLACE
            self.binds = self.binds or option in _BIND
            if option in _TWO_VALUES and values:
                self.parameters.add(values[0])
            position += option_length(words[position])
        self.has_program = position < len(words)


def command(record, words, slots, chosen):
    """The complete mpirun command line."""
    request = _Request(words)
    base = state.directory(record["name"])
    nodes = chosen or record["nodes"]
    ranks = request.count or len(nodes) * (slots or 1)
    slots = slots or -(-ranks // len(nodes))
    line = ["mpirun", "--mca", "plm_rsh_agent", os.path.join(base, "agent"),
            "--mca", "orte_tmpdir_base", os.path.join(base, "tmp")]
    if os.geteuid() == 0:
        line.append("--allow-run-as-root")
    if not request.places:
        line += ["--host", ",".join(f"{node['label']}:{slots}" for node in nodes)]
        if request.count is None and request.has_program:
            line += ["-np", str(ranks)]
    if not request.binds:
        # Every node believes that it owns all cores: bound, the first rank of each would share core 0.
        line += ["--bind-to", "none"]
    if ranks > len(os.sched_getaffinity(0)) and "mpi_yield_when_idle" not in request.parameters:
        line += ["--mca", "mpi_yield_when_idle", "1"]
    return line + words


def _become(record, holder, line, job, old_mask, parent):
    """In the child: enter the first node and turn into mpirun. Never returns."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)
        namespaces.enter(holder)
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        os.execvpe(line[0], line, state.environment(record, holder, job))
    except VclusterError as error:
        os.write(2, f"vcluster: {error}\n".encode())
    except FileNotFoundError:
        os.write(2, b"vcluster: mpirun is not installed (Debian: apt install openmpi-bin)\n")
    except OSError as error:
        os.write(2, f"vcluster: cannot start mpirun: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _watch(child):
    """Waits for mpirun and hands signals on; returns its exit status as a shell would."""
    deadline = None
    watched = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if deadline and time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)  # our own unreaped child: the number cannot have been recycled
            deadline = None
        information = signal.sigtimedwait(watched, 1.0)
        if information is None or information.si_signo == signal.SIGCHLD:
            continue
        deadline = deadline or time.monotonic() + _ABORT_GRACE_SECONDS
        # si_code > 0: the terminal sent it to the whole foreground group, so mpirun has it already.
        if information.si_code <= 0:
            os.kill(child, information.si_signo)


def run(record, words, slots, chosen):
    """Runs mpirun in the first chosen node; afterwards nothing of the job is left."""
    holder = (chosen or record["nodes"])[0]
    line = command(record, words, slots, chosen)
    job = str(uuid.uuid4())
    parent = os.getpid()
    old_mask = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        _become(record, holder, line, job, old_mask, parent)
    status = _watch(child)
    left = processes.end_all(lambda pid: processes.has_mark(pid, "VCLUSTER_JOB", job), grace=2.0)
    if left:
        raise VclusterError(f"{left} processes of the job do not end")
    return status


def agent(record, words):
    """Called by launchers in the place of ssh: [OPTIONS] NODE COMMAND..., the words joined for a shell as ssh does."""
    while words and words[0].startswith("-"):
        words = words[1:]
    if not words:
        raise VclusterError("agent: no node given")
    holder = state.node(record, words[0])
    text = " ".join(words[1:])
    environment = state.environment(record, holder)
    namespaces.enter(holder)
    os.execve("/bin/sh", ["sh", "-c", text], environment)
