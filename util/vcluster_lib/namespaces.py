"""Enters a node, and starts the process that keeps a node alive."""
import ctypes
import os
import select
import shlex
import subprocess

from . import processes
from .errors import VclusterError

_CLONE_FLAGS = {"mnt": 0x00020000, "uts": 0x04000000, "ipc": 0x08000000, "net": 0x40000000}
_HOLDER_TIMEOUT_SECONDS = 20
_libc = ctypes.CDLL(None, use_errno=True)


def enter(holder, kinds=processes.NAMESPACES):
    """Moves this process into the namespaces of a holder and keeps its working directory if it exists there."""
    try:
        handle = os.pidfd_open(holder["pid"])
    except OSError as error:
        raise VclusterError(f"{holder['label']} is gone, because its first process has ended: make the cluster again") from error
    if processes.start_time(holder["pid"]) != holder["start"]:
        os.close(handle)
        raise VclusterError(f"{holder['label']} is gone, because its first process has ended: make the cluster again")
    directory = os.getcwd()
    flags = 0
    for kind in kinds:
        flags |= _CLONE_FLAGS[kind]
    if _libc.setns(handle, flags) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise VclusterError(f"cannot enter {holder['label']}: {reason}")
    os.close(handle)
    try:
        os.chdir(directory)
    except OSError:
        os.chdir("/")


def run_in(holder, command, kinds=processes.NAMESPACES, stdin_text=None):
    """Runs a short command inside a holder's namespaces; its error message becomes the error."""
    result = subprocess.run(
        command, input=stdin_text, text=True, capture_output=True, check=False,
        preexec_fn=lambda: enter(holder, kinds))
    if result.returncode != 0:
        message = (result.stderr or result.stdout).strip().splitlines()
        reason = message[0] if message else f"exit status {result.returncode}"
        raise VclusterError(f"{holder['label']}: {' '.join(command[:2])}: {reason}")
    return result.stdout


def _spawn_holder(label, unshare_options, script, environment):
    command = ["unshare", *unshare_options, "--", "sh", "-ec", script + "\necho ready\nexec sleep infinity >/dev/null 2>&1"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=environment, cwd="/", start_new_session=True)
    text = b""
    while not text.endswith(b"ready\n"):
        readable, _, _ = select.select([process.stdout], [], [], _HOLDER_TIMEOUT_SECONDS)
        piece = os.read(process.stdout.fileno(), 4096) if readable else b""
        if not piece:
            process.kill()
            process.wait()
            reason = text.decode(errors="replace").strip().splitlines()
            raise VclusterError(f"cannot start {label}: {reason[0] if reason else 'its first process does not answer'}")
        text += piece
    process.stdout.close()
    return {"label": label, "pid": process.pid, "start": processes.start_time(process.pid)}


def start_switch(environment):
    """Starts the holder of the namespace with the bridges."""
    return _spawn_holder("the switch", ["--net"], ":", environment)


def start_node(label, hosts_file, temporary_directory, environment):
    """Starts the holder of a node: own host name, network, IPC, /dev/shm, /sys, /etc/hosts and temporary files, and no
    kernel symbols."""
    script = "\n".join([
        f"hostname {shlex.quote(label)}",
        "mount -t tmpfs -o mode=1777,nosuid,nodev vcluster-shm /dev/shm",
        f"mount -t tmpfs -o mode=1777,nosuid,nodev vcluster-tmp {shlex.quote(temporary_directory)}",
        f"mount --bind {shlex.quote(hosts_file)} /etc/hosts",
        "mount -t sysfs -o nosuid,nodev,noexec sysfs /sys",
        # libfabric's verbs provider reads the whole file in every process, whatever provider it uses: 0.1 s of
        # processor time.
        "[ ! -e /proc/kallsyms ] || mount --bind /dev/null /proc/kallsyms",
    ])
    # Slave, not private: nodes see later mounts of the machine; the machine never sees those of the nodes.
    options = ["--net", "--uts", "--ipc", "--mount", "--propagation", "slave"]
    return _spawn_holder(label, options, script, environment)
