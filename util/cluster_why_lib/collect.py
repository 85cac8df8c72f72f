"""Asks all nodes of a job: through the agents if one runs on this node, else by a remote shell.

Without agents the command asks this node, then the nodes of all peers in its answer, and so on.
"""
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import List, NamedTuple

from cluster_lib import ranks
from clusterd_lib import query
from clusterd_lib.errors import AgentError

from . import here, report
from .report import Node, Process

AT_ONCE, SECONDS_MAX, ROUNDS_MAX = 16, 30, 8
AGENT_SECONDS = 25


class Collected(NamedTuple):
    nodes: List[Node]
    local: List[Process]  # those of this node
    span_s: float  # how long it took to ask
    means: str  # by which they were asked


def by_agents(ask=lambda: query.ask_locally("ranks", seconds=AGENT_SECONDS)):
    """AgentError if no agent runs here, or if it knows no such question."""
    started = time.monotonic()
    answer = ask()
    try:
        nodes = [report.read(Node, entry) for entry in answer["nodes"]]
        local = next((node.processes for node in nodes if node.name == answer["seen_from"]), [])
    except (KeyError, TypeError, report.Malformed) as error:
        raise AgentError(f"the answer is malformed: {error}") from error
    return Collected(nodes, local, time.monotonic() - started, "agents")


def default_remote():
    """ssh; in a virtual node, the program by which launchers reach the other nodes."""
    agent = os.path.join("/run/vcluster", os.environ.get("VCLUSTER_NAME", ""), "agent")
    return agent if os.environ.get("VCLUSTER_NODE") and os.access(agent, os.X_OK) else "ssh -o BatchMode=yes"


class ByShell:
    """Asks nodes by a program that is called as ssh is: PROGRAM [OPTIONS] NODE COMMAND. `command` answers with `report_text`."""

    def __init__(self, remote, command, program):
        self._remote, self._command, self._program = shlex.split(remote), command, program

    def _ask(self, name, addresses):
        try:
            said = subprocess.run([*self._remote, name, *map(shlex.quote, self._command)], stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", check=False, timeout=SECONDS_MAX)
            if said.returncode != 0:
                reasons = said.stderr.strip().splitlines() or [f"{self._remote[0]} ended with status {said.returncode}"]
                return Node(name, addresses, ranks.printable(reasons[-1]))
            found = report.read(Node, json.loads(said.stdout))
            return found._replace(addresses=sorted({*found.addresses, *addresses}))
        except (OSError, subprocess.TimeoutExpired, ValueError, RecursionError, report.Malformed) as error:
            return Node(name, addresses, ranks.printable(str(error)))

    def _ask_all(self, targets):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda target: self._ask(*target), targets.items()))

    def collect(self, names=()):
        """Of this node and those named; without names, of those of their peers."""
        started = time.monotonic()
        nodes = [own_node(self._program)]
        local = nodes[0].processes
        if names:
            nodes += self._ask_all({name: _addresses_of(name) for name in names if name != nodes[0].name})
            return Collected(nodes, local, time.monotonic() - started, self._remote[0])
        for _ in range(ROUNDS_MAX):
            targets = _unasked(nodes)
            if not targets:
                break
            nodes += self._ask_all(targets)
        return Collected(nodes, local, time.monotonic() - started, self._remote[0])


def own_node(program):
    """This node as others see it."""
    processes = here.look(program)
    own = {report.host_of(address) for process in processes for address in process.addresses}
    return Node(ranks.host(), sorted(own), processes=processes)


def _addresses_of(name):
    try:
        return sorted({entry[4][0] for entry in socket.getaddrinfo(name, None)})
    except OSError:
        return []


def _unasked(nodes):
    """Nodes of peers that have not been asked: name -> addresses."""
    asked = {address for node in nodes for address in node.addresses}
    hosts = {host for node in nodes for process in node.processes for host in process.hosts}
    found = {}
    for host in sorted(hosts - asked):
        try:
            name = socket.gethostbyaddr(host)[0].partition(".")[0]
        except OSError:
            name = host
        found.setdefault(name, []).append(host)
    return found


def report_text(program):
    """What `command` prints on another node: one line of JSON."""
    return json.dumps(report.write(own_node(program)))


def this_command():
    return [os.path.realpath(sys.argv[0])]
