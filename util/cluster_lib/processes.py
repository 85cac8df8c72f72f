"""Child processes, and what /proc shows about them."""
import contextlib
import ctypes
import os
import re
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


def open_sockets(pid):
    """The inodes of the sockets that a process has open, as /proc/net/TABLE shows them; none of another user's process."""
    found, directory = set(), f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            with contextlib.suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(os.path.join(directory, name)))
                found |= {match.group(1)} if match else set()
    return found


def listens(pid, port):
    """True if a TCP socket in the network namespace of the process listens on the port."""
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in sockets(pid, "tcp"))
