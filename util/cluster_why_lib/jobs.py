"""Which processes belong to a job, and which job a user means.

Processes of one user belong together if their launcher gave them the same name, or if one mentions an endpoint of the other: so
those that a job spawns belong to it, and jobs without a launcher are found.
"""
from typing import List, NamedTuple

from cluster_lib import processes as system

from .report import ANY, Process

DAEMONS = ("cluster-ip",)  # they have endpoints as long as their node runs


class NoJob(Exception):
    """No job is meant, or several are; the text says which there are."""


class Job(NamedTuple):
    names: List[str]
    processes: List[Process]


class _Sets:
    """Disjoint sets of numbers."""

    def __init__(self, count):
        self._above = list(range(count))

    def top(self, one):
        while self._above[one] != one:
            self._above[one] = one = self._above[self._above[one]]
        return one

    def join(self, one, other):
        self._above[self.top(one)] = self.top(other)


def mentioned(process):
    """Addresses of other endpoints that a process speaks of."""
    return ({one.peer for one in (*process.operations, *process.messages)} | {one.address for one in process.peers}) - {ANY}


def group(processes):
    """The jobs of these processes, the largest first."""
    known = {(process.job, process.rank) for process in processes if process.addresses and process.job}
    # What a rank or a launcher has started carries the rank in its environment, on whatever node.
    processes = [process for process in processes if process.addresses or (process.job, process.rank) not in known]
    sets, by_address, by_name = _Sets(len(processes)), {}, {}
    for number, process in enumerate(processes):
        for address in process.addresses:
            by_address.setdefault((process.uid, address), number)
        if process.job:
            sets.join(number, by_name.setdefault((process.uid, process.job), number))
    for number, process in enumerate(processes):
        for address in mentioned(process):
            if (process.uid, address) in by_address:
                sets.join(number, by_address[process.uid, address])
    found = {}
    for number, process in enumerate(processes):
        found.setdefault(sets.top(number), []).append(process)
    jobs = [Job(sorted({process.job for process in members} - {""}),
                sorted(members, key=lambda process: (process.job, process.rank, process.node, process.pid))) for members in found.values()]
    return sorted(jobs, key=lambda job: -len(job.processes))


def describe(job):
    """One line: names, ranks, nodes, launcher."""
    first, count = job.processes[0], len(job.processes)
    nodes = sorted({process.node for process in job.processes})
    launchers = sorted({(process.launcher.command, process.launcher.pid) for process in job.processes if process.launcher.pid})
    started = f", started by {' '.join(f'{name} {pid}' for name, pid in launchers[:2])}" if launchers else ""
    return (f"{' '.join(job.names) or first.pid}: {count} process{'es' if count != 1 else ''} of {first.command} on "
            f"{' '.join(nodes[:4])}{' ...' if len(nodes) > 4 else ''}{started}")


def _listening(pid, ports):
    """Whether a process of this node listens on one of these TCP ports: a launcher awaits its helpers of other nodes there."""
    inodes = system.open_sockets(pid)
    return any(line.split()[3] == "0A" and int(line.split()[1].rpartition(":")[2], 16) in ports and line.split()[9] in inodes
               for table in ("tcp", "tcp6") for line in system.sockets(pid, table))


def _has_process(job, pid, local):
    return any(process in local and (process.pid == pid or pid in process.ancestors) for process in job.processes)


def _has_launcher(job, pid):
    ports = {port for process in job.processes for port in process.launcher.ports}
    return bool(ports) and _listening(pid, ports)


def called(jobs, name, uid):
    """The job of that name of a user. Another user's processes can claim any name."""
    found = next((job for job in jobs if name in job.names and job.processes[0].uid == uid), None)
    if found is None:
        raise NoJob("no process of this job has an endpoint of the provider")
    return found


def find(jobs, wanted, local):
    """The job with that name; or that of a process of this node, or of the launcher that has started it. `local` are the processes
    of this node. Without `wanted` there has to be one job; daemons of this project are none."""
    if not jobs:
        raise NoJob('no process that you may see has an endpoint of the provider (on virtual nodes: "vcluster exec node1 cluster-why")')
    there = "; ".join(map(describe, jobs[:8])) + ("; ..." if len(jobs) > 8 else "")
    if not wanted:
        own = [job for job in jobs if job.processes[0].command not in DAEMONS] or jobs
        if len(own) > 1:
            raise NoJob(f"{len(jobs)} jobs are running, name one: {there}")
        return own[0]
    found = [job for job in jobs if wanted in job.names]
    if not found and wanted.isdigit():
        found = [job for job in jobs if _has_process(job, int(wanted), local)] or [job for job in jobs if _has_launcher(job, int(wanted))]
    if not found:
        raise NoJob(f"no job is called '{wanted}', and no process of this node with that number is one of a job; there is {there}")
    return found[0]
