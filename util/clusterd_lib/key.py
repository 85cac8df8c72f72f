"""The key of the cluster, with which agents sign their messages. A process that has the key can do all that an agent
can. So this reads the key only from a file that root or this process's user owns and no other user can read."""
import os
import stat

from .errors import AgentError

BYTES_MIN = 16
KEY_MAX = 4096
FILE_MAX = 1 << 20


def read_private(path, option):
    """The bytes of a file that only its owner can read, and that root or this process's user owns."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise AgentError(f"{option} {path}: {error.strerror}") from error
    with open(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in (0, os.geteuid()):
            raise AgentError(f'{option} {path}: the file belongs to another user, who can read the key: "chown root {path}"')
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise AgentError(f'{option} {path}: others may read or write it, or it is not a regular file: "chmod 600 {path}"')
        return file.read(FILE_MAX)


def read(path):
    """The key of the agents; empty without a file."""
    if not path:
        return b""
    key = read_private(path, "--key-file")[:KEY_MAX].strip()
    if len(key) < BYTES_MIN:
        raise AgentError(f'--key-file {path}: at least {BYTES_MIN} bytes are needed: "umask 077; openssl rand -hex 32 > {path}"')
    return key
