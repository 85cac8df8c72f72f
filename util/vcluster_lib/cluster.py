"""Makes clusters and takes them down."""
import os
import shlex
import sys
import uuid

from . import namespaces, network, processes, state, units
from .errors import VclusterError

NODES_MAX = 200
RAILS_MAX = 8
MTU_MIN, MTU_MAX = 576, 65535


def _check(nodes, rails, mtu, rate):
    for option, value, low, high in (
            ("-n", nodes, 1, NODES_MAX), ("--rails", rails, 1, RAILS_MAX), ("--mtu", mtu, MTU_MIN, MTU_MAX)):
        if not low <= value <= high:
            raise VclusterError(f"{option} {value}: allowed are {low} to {high}")
    if rate:
        units.rate("--rate", rate)


def _write_files(record):
    """The files that nodes and launch agents need; `tmp` stays empty here, each node mounts its own over it."""
    base = state.directory(record["name"])
    os.makedirs(os.path.join(base, "tmp"))
    with open(os.path.join(base, "hosts"), "w", encoding="ascii") as file:
        file.write(network.hosts_text(record["subnet"], record["size"], record["rails"]))
    tool = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "vcluster")
    agent = os.path.join(base, "agent")
    with open(agent, "w", encoding="utf-8") as file:
        command = " ".join(map(shlex.quote, [sys.executable, tool, "agent", "--name", record["name"]]))
        file.write(f"#!/bin/sh\n# Stands where a launcher expects ssh: agent [OPTIONS] NODE COMMAND...\n"
                   f"exec {command} -- \"$@\"\n")
    os.chmod(agent, 0o755)


def _build(record):
    base = state.directory(record["name"])
    holder_environment = {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
                          state.MARK: record["id"], "VCLUSTER_NAME": record["name"]}
    record["switch"] = namespaces.start_switch(holder_environment)
    state.save(record)
    network.make_rails(record["switch"], record["rails"], record["mtu"])
    for number in range(1, record["size"] + 1):
        holder = namespaces.start_node(
            f"node{number}", os.path.join(base, "hosts"), os.path.join(base, "tmp"), holder_environment)
        record["nodes"].append(holder)
        state.save(record)
        network.connect_node(record["switch"], holder, number, record)
    record["ready"] = True
    state.save(record)


def up(name, nodes, rails, mtu, rate):
    """Makes a cluster; first clears leftovers of an interrupted run under the same name."""
    _check(nodes, rails, mtu, rate)
    state.check_name(name)
    with state.lock():
        old = state.load(name)
        if old and state.is_running(old):
            raise VclusterError(f"cluster '{name}' exists already: choose another --name, or remove it: \"vcluster down --name {name}\"")
        _clear(name, old)
        os.makedirs(state.directory(name))
        record = {"name": name, "id": str(uuid.uuid4()), "ready": False, "subnet": state.free_subnet(),
                  "size": nodes, "rails": rails, "mtu": mtu, "rate": rate, "switch": None, "nodes": []}
        state.save(record)
        try:
            _write_files(record)
            _build(record)
        except BaseException:
            _clear(name, record)
            raise
    return record


def down(name):
    """Ends everything that runs in the nodes, then the nodes, so that nothing remains."""
    state.check_name(name)
    with state.lock():
        if name not in state.names():
            raise VclusterError(f"cluster '{name}' does not exist")
        _clear(name, state.load(name))


def _clear(name, record):
    if record:
        resisted = processes.end_all(_member_test(record))
        if resisted:
            raise VclusterError(f"{resisted} processes of cluster '{name}' do not end; try again: \"vcluster down --name {name}\"")
    state.remove(name)


def _member_test(record):
    """A process belongs to the cluster when it carries its mark outside our own network namespace, or when it
    lives in a namespace that was made for a holder proved to be ours. The machine's own namespaces never count."""
    ours = processes.namespace_id("self", "net")
    spaces = set()
    for holder in [record["switch"]] + record["nodes"]:
        if holder and state.holder_alive(holder, record["id"]):
            kinds = ("net",) if holder is record["switch"] else processes.NAMESPACES
            spaces.update(processes.namespace_id(holder["pid"], kind) for kind in kinds)
    for outsider in ("self", 1):
        spaces -= {processes.namespace_id(outsider, kind) for kind in processes.NAMESPACES}
    spaces.discard(None)

    def is_member(pid):
        if any(processes.namespace_id(pid, kind) in spaces for kind in processes.NAMESPACES):
            return True
        if not processes.has_mark(pid, state.MARK, record["id"]):
            return False
        return processes.namespace_id(pid, "net") not in (ours, None)

    return is_member
