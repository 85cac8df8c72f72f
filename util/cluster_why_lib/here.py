"""Looks at the processes of this node: what cluster-info reports about their endpoints, and what /proc shows.

It also finds ranks that have no endpoint: they have not begun to use MPI, or have ended that, or use something else. Users see
their own processes, root sees all.
"""
import json
import os
import re
import subprocess

from cluster_lib import ranks

from .report import Connection, Launcher, Malformed, Message, Operation, Peer, Process, host_of, read, write

SECONDS_MAX = 15
OPERATIONS_MAX, MESSAGES_MAX, PEERS_MAX = 64, 16, 256  # of a process; the oldest operations stay
_WORDS = ("--all", "--why", "--json")
_PORT = re.compile(r":(\d{4,5})\b")


class NoReport(Exception):
    """cluster-info is missing or fails; the text is one line with the reason."""


def question(program):
    """The words of the command whose output `describe` takes."""
    return [program, *_WORDS]


def look(program):
    """The processes of this node that this user may see."""
    try:
        said = subprocess.run(question(program), capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoReport(f"cluster-info: {error}") from error
    if said.returncode != 0:
        raise NoReport(said.stderr.strip() or f"cluster-info ended with status {said.returncode}")
    return describe(said.stdout)


def describe(text):
    """The processes in the JSON of cluster-info, and ranks without endpoint beside them."""
    try:
        reported = json.loads(text)["processes"]
        found = [_checked(entry) for entry in reported if entry["pid"] != 0]
    except (ValueError, KeyError, TypeError) as error:
        raise NoReport(f"cluster-info: its answer is malformed: {error}") from error
    return found + _without_endpoint(found)


def _seconds(record, name):
    return round(record.get(name, 0) / 1e9, 3)


def _kernel(pid):
    """What /proc shows of any process."""
    told, seen = ranks.told(pid), ranks.seen(pid)
    return {"node": told.node or ranks.host(), "pid": pid, "command": seen.command, "uid": ranks.owner_of(pid) or 0, "job": told.job,
            "rank": told.rank, "size": told.size, "state": seen.state, "stop_signal": seen.stop_signal, "tracer": ranks.tracer_of(pid),
            "sleeps_in": seen.sleeps_in, "ancestors": ranks.ancestors(pid)}


def _launcher(entry):
    if not entry:
        return Launcher()
    ports = {int(port) for word in ranks.command_line(entry["pid"]) for port in _PORT.findall(word)}
    return Launcher(entry["pid"], ranks.printable(entry["command"]), ranks.seen(entry["pid"]).state, sorted(ports),
                    [Connection(each["from"], each["to"], each["retransmissions"]) for each in entry["silent"]])


def _operations(endpoints):
    """Operations that differ only in their age become one; buffers for any message are left out, as they wait for nothing."""
    found = {}
    for each in (each for endpoint in endpoints for each in endpoint.get("operations", [])):
        if each["operation"] == "buffer" and each["peer"] == "any":
            continue
        one = Operation(each["operation"], each["peer"], each["waits_for"], each["bytes"], each["done_bytes"], each.get("tag", -1),
                        _seconds(each, "age_ns"))
        same = found.setdefault(one._replace(age_s=0.0), [])
        same.append(one.age_s)
    merged = [one._replace(age_s=max(ages), count=len(ages)) for one, ages in found.items()]
    return sorted(merged, key=lambda one: -one.age_s)[:OPERATIONS_MAX]


def _peers(endpoints, named):
    """Peers about which there is something to say: `named` ones, and those that are lost or owe an answer."""
    found = []
    for each in (each for endpoint in endpoints for each in endpoint.get("peers", [])):
        owes = each.get("queued_frames", 0) + sum(rail["in_flight_frames"] for rail in each.get("rails", [])) > 0
        one = Peer(each["peer"], each["path"], each.get("lost", ""), _seconds(each, "lost_ns"), _seconds(each, "silent_ns"), owes,
                   each.get("unread", False))
        if one.address in named or one.lost or one.unread or owes:
            found.append(one)
    return sorted(found, key=lambda one: (one.address not in named, not one.lost))[:PEERS_MAX]


def _checked(entry):
    """Any user can start a process that reports anything. Such a report hides no other process."""
    try:
        return read(Process, write(_process(entry)))
    except (ValueError, KeyError, TypeError, AttributeError, Malformed):
        return Process(**_kernel(entry["pid"]), trouble="its report is malformed")


def _process(entry):
    endpoints = entry["endpoints"]
    operations = _operations(endpoints)
    messages = [Message(each["peer"], each["bytes"], each.get("tag", -1))
                for endpoint in endpoints for each in endpoint.get("messages", [])][:MESSAGES_MAX]
    troubles = [endpoint["trouble"] for endpoint in endpoints if endpoint.get("trouble")]
    named = {one.peer for one in (*operations, *messages)}
    hosts = {host_of(each["peer"]) for endpoint in endpoints for each in endpoint.get("peers", [])}
    # A process with several endpoints makes calls if it makes some for any of them. Those without peers are not in use: a library can open
    # some that it never asks for anything.
    used = [endpoint for endpoint in endpoints if endpoint.get("peers")] or endpoints
    calls = [_seconds(endpoint["endpoint"], "no_call_ns") for endpoint in used if not endpoint.get("trouble")]
    return Process(**_kernel(entry["pid"]), launcher=_launcher(entry.get("launcher")),
                   addresses=[endpoint["endpoint"]["endpoint"] for endpoint in endpoints], hosts=sorted(hosts), trouble=troubles[0] if troubles else "",
                   no_call_s=min(calls, default=0.0), operations=operations, peers=_peers(endpoints, named), messages=messages)


def _without_endpoint(found):
    """Ranks of this node's jobs without endpoint, one process of each: what a rank has started carries its rank, too."""
    known = {(process.job, process.rank) for process in found}
    everywhere = os.geteuid() == 0 and os.access("/proc/sys/net/core/dev_weight", os.F_OK)  # outside of all containers
    own, users, more = ranks.network_of("self"), {0, os.geteuid()}, []
    for pid in sorted(ranks.processes()):
        if ranks.owner_of(pid) not in users and os.geteuid() != 0 or not everywhere and ranks.network_of(pid) != own:
            continue
        told = ranks.told(pid)
        if told.rank >= 0 and told.job and (told.job, told.rank) not in known and ranks.seen(pid).state not in ("", "Z"):
            known.add((told.job, told.rank))
            more.append(Process(**_kernel(pid)))
    return more
