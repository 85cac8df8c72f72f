"""System errors in words: a command that fails says which call failed, on which file, and why."""
import linecache
import os
import re
import traceback

_UTIL = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_CALL = re.compile(r"[A-Za-z_][\w.]*(?=\()")


def _place(error):
    """The innermost line of our own code in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if os.path.realpath(frame.filename).startswith(_UTIL + os.sep)]
    return (ours or frames or [None])[-1]


def _call(frame):
    """The call in that line; from Python 3.11 on the traceback tells the exact expression."""
    line = linecache.getline(frame.filename, frame.lineno)
    begin = getattr(frame, "colno", None) or 0
    found = _CALL.search(line.encode()[begin:].decode(errors="replace"))
    return found.group() if found else line.strip()


def in_words(error):
    """One line, such as `os.pidfd_open: Invalid argument (vcluster_lib/agents.py, line 89)`; with the file that the
    call named, if any."""
    reason = error.strerror or str(error) or type(error).__name__
    frame = _place(error)
    files = " ".join(os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)
                     for name in (error.filename, error.filename2) if name is not None)
    if frame is None:
        return f"{files}: {reason}" if files else reason
    if files:
        return f"{_call(frame)} {files}: {reason}"
    return f"{_call(frame)}: {reason} ({os.path.relpath(os.path.realpath(frame.filename), _UTIL)}, line {frame.lineno})"
