"""Child processes, and what /proc shows about them."""
import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent():
    """For preexec_fn: the child is killed when this process ends, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def sockets(pid, table):
    """The lines of /proc/net/TABLE, one per socket, in the network namespace of a process; none if it has ended."""
    try:
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
            return list(lines)[1:]
    except OSError:
        return []


def listens(pid, port):
    """True if a TCP socket in the network namespace of the process listens on the port."""
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets(pid, "tcp"))
