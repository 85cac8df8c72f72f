"""The record of a cluster: /run/vcluster/NAME/state.json, hosts, agent and an empty directory `tmp`.

`up` writes the state before it starts the first process and again after each one, so `down` can always undo an
interrupted `up`. `ready` is true only when the cluster is complete.
"""
import contextlib
import fcntl
import json
import os
import re
import shutil

from . import processes
from .errors import VclusterError

ROOT = "/run/vcluster"
MARK = "VCLUSTER_ID"  # gives every process started in the cluster the cluster's unique identity
SUBNETS = range(64, 192)


def check_name(name):
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,30}", name):
        raise VclusterError(f"'{name}' is not a valid name: use up to 31 of a-z 0-9 - _ and begin with a letter or digit")
    return name


def directory(name):
    return os.path.join(ROOT, name)


@contextlib.contextmanager
def lock():
    """Allows one `up` or `down` at a time on this machine."""
    os.makedirs(ROOT, mode=0o755, exist_ok=True)
    with open(os.path.join(ROOT, ".lock"), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def names():
    try:
        entries = sorted(os.listdir(ROOT))
    except FileNotFoundError:
        return []
    return [entry for entry in entries if not entry.startswith(".") and os.path.isdir(directory(entry))]


def load(name):
    """The state of a cluster, or None when there is none (or nothing legible, from an interrupted run)."""
    try:
        with open(os.path.join(directory(name), "state.json"), encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return None


def save(state):
    path = os.path.join(directory(state["name"]), "state.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file, indent=1)
    os.replace(path + ".new", path)


def remove(name):
    shutil.rmtree(directory(name), ignore_errors=True)


def holder_alive(holder, identity):
    """True when the recorded process is still the one that was recorded."""
    return processes.start_time(holder["pid"]) == holder["start"] and processes.has_mark(
        holder["pid"], MARK, identity)


def is_running(state):
    """True when `up` completed and every holder lives."""
    holders = [state.get("switch")] + state.get("nodes", [])
    return bool(state.get("ready")) and all(h and holder_alive(h, state["id"]) for h in holders)


def running(name):
    """The state of a complete cluster; a clear error otherwise."""
    state = load(check_name(name))
    if state is None:
        others = ", ".join(names())
        hint = f" (there is: {others})" if others else " (\"vcluster up\" makes one)"
        raise VclusterError(f"cluster '{name}' does not exist{hint}")
    if not is_running(state):
        raise VclusterError(f"cluster '{name}' is broken or incomplete: \"vcluster up --name {name}\" makes it again")
    return state


def node(state, text):
    """The holder of a node named node3 or 3."""
    match = re.fullmatch(r"(?:node)?(\d{1,4})", text)
    number = int(match.group(1)) if match else 0
    if not 1 <= number <= len(state["nodes"]):
        raise VclusterError(f"unknown node '{text}': cluster '{state['name']}' has node1 to node{len(state['nodes'])}")
    return state["nodes"][number - 1]


def free_subnet():
    """A second octet that no other cluster here uses: isolation does not need it, people do, to tell clusters apart."""
    used = {state["subnet"] for state in map(load, names()) if state}
    for subnet in SUBNETS:
        if subnet not in used:
            return subnet
    raise VclusterError(f"{len(SUBNETS)} clusters exist already: remove one first (\"vcluster down --name NAME\")")


def environment(state, holder, job=None):
    """The variables of a process in a node besides the caller's own."""
    values = dict(os.environ)
    values.update({
        MARK: state["id"], "VCLUSTER_NAME": state["name"], "VCLUSTER_NODE": holder["label"],
        "TMPDIR": os.path.join(directory(state["name"]), "tmp")})
    if job:
        values["VCLUSTER_JOB"] = job
    return values
