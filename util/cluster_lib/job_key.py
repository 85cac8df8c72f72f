"""The key of a job. Each node computes it from a secret that all nodes share and from the launcher's name for the job.

    key = HMAC-SHA256(secret, "cluster job key\\0" + name of the job)      64 hexadecimal digits

The key of one job reveals neither the secret nor the key of another job. A job with the name of an earlier one also has
its key.
"""
import contextlib
import errno
import hashlib
import hmac
import os
import re
import secrets
import stat

# Launchers' names for a job, the widest first: the steps of an allocation, and processes that a job spawns, share the
# key of the allocation.
JOB_VARIABLES = ("SLURM_JOB_ID", "FLUX_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE", "PMI_JOBID")
_SECRET_MAX = 4096
_DIGITS = re.compile(r"(?:[0-9a-fA-F]{2}){16,64}")  # limit of FI_CLUSTER_KEY_FILE


class JobKeyError(Exception):
    """Ends the command with the message on standard error."""


def default_secret():
    """The default path: one for the machine, or one for each user."""
    if os.geteuid() == 0:
        return "/etc/libfabric-cluster/secret"
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(home, "libfabric-cluster", "secret")


def job_name(wish=None, environment=None):
    """The name that all processes of the job know and no other job has: the user's, else the launcher's."""
    if wish:
        return "job=" + wish
    values = os.environ if environment is None else environment
    for variable in JOB_VARIABLES:
        if values.get(variable):
            return f"{variable}={values[variable]}"
    raise JobKeyError(f"no launcher has named the job: none of {', '.join(JOB_VARIABLES)} is set (give --job ID)")


def read_secret(path):
    """The bytes of a file that only its owner can read, and whose owner this process trusts."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        why = "it is a symbolic link; name the file itself" if error.errno == errno.ELOOP else error.strerror
        raise JobKeyError(f'the secret {path} is refused: {why} (to make one: "cluster-key --secret {path} --make-secret")') from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise JobKeyError(f"the secret {path} is refused: it is not a regular file")
        if status.st_uid != os.geteuid():
            raise JobKeyError(f"the secret {path} is refused: it belongs to another user; copy it to a file of your own")
        if status.st_mode & 0o077:
            raise JobKeyError(f'the secret {path} is refused: others may read or write it: run "chmod 600 {path}"')
        text = os.read(file, _SECRET_MAX + 1).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    if not _DIGITS.fullmatch(text):
        raise JobKeyError(f"the secret {path} is refused: it is not 32 to 128 hexadecimal digits")
    return bytes.fromhex(text)


def derive(secret, name):
    """Hexadecimal digits, as FI_CLUSTER_KEY and FI_CLUSTER_KEY_FILE take them."""
    return hmac.new(secret, b"cluster job key\0" + name.encode(), hashlib.sha256).hexdigest()


def relay_key(key):
    """The relay key of a job's key, both in hexadecimal digits. A relay needs no more, and cannot open frames with it (HKDF, RFC 5869,
    as in prov/cluster/src/seal/job_key.h)."""
    job = hmac.new(b"cluster provider, seal version 1", bytes.fromhex(key), hashlib.sha256).digest()
    return hmac.new(job, b"relay\1", hashlib.sha256).hexdigest()


def write_private(path, text, owner=None, replace=True):
    """Writes text into a file that only its owner can ever read; the file appears whole or not at all."""
    beside = f"{path}.{secrets.token_hex(8)}"
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(file, "w", encoding="ascii") as opened:
            opened.write(text + "\n")
            if owner is not None:
                os.fchown(file, owner.pw_uid, owner.pw_gid)
        if replace:
            os.rename(beside, path)
        else:
            os.link(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


def make_secret(path):
    """Writes a new secret, which the user has to copy to every node; never overwrites one."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
    try:
        write_private(path, secrets.token_hex(32), replace=False)
    except FileExistsError as error:
        raise JobKeyError(f"{path} exists already; remove it first if its jobs have ended") from error
