"""The key of the cluster, by which agents know each other's messages."""
import os
import stat

from .errors import AgentError

BYTES_MIN = 16


def read(path):
    """The key in a file that only its owner can read; empty without a file."""
    if not path:
        return b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise AgentError(f"--key-file {path}: {error.strerror}") from error
    with open(descriptor, "rb") as file:
        mode = os.fstat(file.fileno())
        if not stat.S_ISREG(mode.st_mode) or mode.st_mode & 0o077:
            raise AgentError(f"--key-file {path}: others can read it, or it is no file: chmod 600 {path}")
        key = file.read(4096).strip()
    if len(key) < BYTES_MIN:
        raise AgentError(f"--key-file {path}: at least {BYTES_MIN} bytes are needed: umask 077; openssl rand -hex 32 > {path}")
    return key
