"""An agent (clusterd) in every node of a cluster. All agents share a key made for the cluster."""
import contextlib
import os
import secrets
import signal
import subprocess

from cluster_lib import build

from . import namespaces, processes, state
from .errors import VclusterError

_SYSTEM_PYTHON = "/usr/bin/python3"
_MODULES = "psutil, prometheus_client"
_READY_SECONDS = 30
_UTIL = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def ensure():
    """Provides what agents need: Debian's Python packages, the provider and cluster-info."""
    words = [_SYSTEM_PYTHON, "-c", f"import {_MODULES}"]
    if subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        build.packages("agent")
    if not build.installed:
        build.ensure("vcluster", ["cluster-fi", "cluster-info"])


def _directory(record):
    return os.path.join(state.directory(record["name"]), "agents")


def _key_file(record):
    path = os.path.join(_directory(record), "key")
    if not os.path.exists(path):
        os.makedirs(_directory(record), mode=0o711, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    return path


def _command(record, holder):
    words = [_SYSTEM_PYTHON, "-B", os.path.join(_UTIL, "clusterd"), "--cluster", record["name"], "--name", holder["label"],
             "--key-file", _key_file(record)]
    if not build.installed:
        words += ["--cluster-info", build.path("cluster-info")]
    return words + record.get("agent_options", [])


def start(record, holder):
    """Starts the agent of a node and waits until it serves."""
    agents = record.setdefault("agents", {})
    if is_running(record, holder):
        raise VclusterError(f"the agent of {holder['label']} is running already")
    words = _command(record, holder)  # it makes the directory
    log = os.path.join(_directory(record), holder["label"] + ".log")
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            env=state.environment(record, holder), start_new_session=True,
            preexec_fn=lambda: namespaces.enter(holder))
    if not processes.await_line(process.stdout, b"clusterd:", _READY_SECONDS):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()
        raise VclusterError(f"the agent of {holder['label']} does not start: {lines[-1] if lines else 'no answer'} ({log})")
    agents[holder["label"]] = {"pid": process.pid, "start": processes.start_time(process.pid)}
    state.save(record)


def start_all(record, options=()):
    record["agent_options"] = list(options)
    _key_file(record)
    for holder in record["nodes"]:
        start(record, holder)


def is_running(record, holder):
    entry = record.get("agents", {}).get(holder["label"])
    return bool(entry) and processes.start_time(entry["pid"]) == entry["start"] and not processes.is_zombie(entry["pid"])


def stop(record, holder, number=signal.SIGTERM):
    """Ends the agent of a node; after SIGKILL the node looks dead to the others."""
    if not is_running(record, holder):
        raise VclusterError(f"no agent is running in {holder['label']}")
    handle = os.pidfd_open(record["agents"][holder["label"]]["pid"])
    signal.pidfd_send_signal(handle, number)
    left = processes.wait_all([handle], _READY_SECONDS)
    os.close(handle)
    if left:
        raise VclusterError(f"the agent of {holder['label']} does not end")


def describe(record):
    """A line for each node with an agent."""
    lines = []
    for holder in record["nodes"]:
        entry = record.get("agents", {}).get(holder["label"])
        if entry:
            what = "running" if is_running(record, holder) else "not running"
            lines.append(f"{holder['label']}: {what}")
    return lines
