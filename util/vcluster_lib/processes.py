"""Finds and ends exactly the processes that are ours.

The kernel reuses process numbers, so a number alone proves nothing. The number and the start time identify a holder; a
process's namespaces, or a unique mark in its environment, identify everything else. Signals go through a pidfd that was
opened before the identity check, so no other process can take the number in between.
"""
import contextlib
import os
import select
import signal
import time

NAMESPACES = ("net", "uts", "ipc", "mnt")


def start_time(pid):
    """Clock ticks after boot at which the process started, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None


def namespace_id(pid, kind):
    """Identity of one namespace of a process, or None when it cannot be read."""
    try:
        status = os.stat(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None
    return (kind, status.st_dev, status.st_ino)


def has_mark(pid, variable, value):
    """True when the process was started with variable=value in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return f"{variable}={value}".encode() in environ.read().split(b"\0")
    except OSError:
        return False


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True


def all_pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def open_matching(matches):
    """Opens a pidfd for every living process but this one for which matches(pid) is true."""
    found = []
    for pid in all_pids():
        if pid == os.getpid():
            continue
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        if matches(pid) and not is_zombie(pid):
            found.append(handle)
        else:
            os.close(handle)
    return found


def _signal_all(handles, number):
    for handle in handles:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)


def await_line(stream, word, seconds):
    """True if a line with this word came; then closes the stream. It reads the whole line, since a program that writes
    to a closed pipe ends."""
    said, deadline = b"", time.monotonic() + seconds
    while not any(word in line for line in said.split(b"\n")[:-1]):
        readable, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(stream.fileno(), 4096) if readable else b""
        if not piece:
            break
        said += piece
    stream.close()
    return word in said


def wait_all(handles, seconds):
    """Waits until every process has ended or the time is over; returns the handles of those that remain."""
    deadline = time.monotonic() + seconds
    left = list(handles)
    while left:
        poller = select.poll()
        for handle in left:
            poller.register(handle, select.POLLIN)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            break
        ended = {handle for handle, _ in poller.poll(remaining * 1000)}
        left = [handle for handle in left if handle not in ended]
    return left


def end_all(matches, grace=2.0):
    """Ends every process that matches, first with SIGTERM, then with SIGKILL; returns how many survived (normally
    0)."""
    for attempt in range(6):
        handles = open_matching(matches)
        if not handles:
            return 0
        if attempt == 0:
            _signal_all(handles, signal.SIGTERM)
            _signal_all(handles, signal.SIGCONT)
            left = wait_all(handles, grace)
        else:
            left = handles
        _signal_all(left, signal.SIGKILL)
        left = wait_all(left, 5.0)
        for handle in handles:
            os.close(handle)
    return len(left)
