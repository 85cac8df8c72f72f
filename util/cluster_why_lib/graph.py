"""Who waits for whom in a job, and which causes that can have.

A rank waits if an operation has been in progress for long while the rank makes calls. A receive from any peer waits for all
other ranks. Ranks that do not wait themselves are where the waiting ends: what such a rank does instead is the cause. If from
some ranks no such end can be reached, they wait for each other: a deadlock.

The functions here see reports only. The reports of different nodes are up to `span_s` seconds apart, so only operations older
than that can be one deadlock.
"""
from dataclasses import dataclass, field
from typing import List, NamedTuple

from .report import ANY, Operation, Process, host_of

LONG_S = 1.0  # longer than any operation of a job that makes progress should take
AWAY_S = 2.0  # without any call: the application does something else
SILENT_S = 2.0  # longer than any retransmission should take
CUT_S = 4.0  # without a sign of life, though one is owed; a frame may have been sent only now, after a pause

TO_RECEIVE = "to post a receive that matches it"

# What a rank does.
LOST, ENDED, UNSEEN = "on a lost node", "ended", "unseen"
STOPPED, DEAF, OUTSIDE = "stopped", "gives no report", "without endpoint"
AWAY, WAITING, BUSY, POLLING = "makes no call", "waits", "busy", "polls"


class Wait(NamedTuple):
    source: int
    target: int  # -1: any other rank
    operation: Operation


@dataclass
class Cause:
    """Why ranks wait. `kind` is one of the functions of _Finder; `ranks` are those that have to act, or the members of a cycle in its
    order; `waits` are the operations that show it."""
    kind: str
    ranks: List[int]
    waiting: int = 0  # other ranks that wait for them, at first or second hand
    longest_s: float = 0.0
    waits: List[Wait] = field(default_factory=list)
    node: object = None  # that is lost
    launcher: object = None


class Graph:
    """Ranks are numbers: indices of `processes`. Behind the processes that were seen come those of which only an address is known."""

    def __init__(self, processes, nodes=()):
        self.processes, self.nodes = list(processes), nodes
        self.seen = len(self.processes)
        self._by_address = {}
        for number, process in enumerate(self.processes):
            for address in process.addresses:
                self._by_address.setdefault(address, number)
        self.heard = self._heard()
        for process in list(self.processes):
            for one in process.operations:
                self._add_unseen(one.peer)
            for peer in process.peers:
                if peer.lost:
                    self._add_unseen(peer.address)
        self.waits = [wait for number in range(self.seen) for wait in self._waits_of(number)]
        self.states = [self._state(number) for number in range(len(self.processes))]

    def _heard(self):
        """Address -> the shortest time for which a peer has not heard from it."""
        found = {}
        for process in self.processes:
            for peer in process.peers:
                if peer.silent_s and peer.path not in ("", "none", "shm"):
                    found[peer.address] = min(peer.silent_s, found.get(peer.address, peer.silent_s))
        return found

    def _add_unseen(self, address):
        if address != ANY and address not in self._by_address:
            node = self.node_of(address)
            self._by_address[address] = len(self.processes)
            self.processes.append(Process(node.name if node else "", 0, addresses=[address]))

    def node_of(self, address):
        """The node that has the address; None if none is known."""
        return next((node for node in self.nodes if host_of(address) in node.addresses), None)

    def is_heard(self, node):
        """Whether a rank on the node has given a sign of life lately."""
        return any(silent_s < SILENT_S and host_of(address) in node.addresses for address, silent_s in self.heard.items())

    def rank_at(self, address):
        return self._by_address.get(address, -1)

    def _waits_of(self, number):
        process = self.processes[number]
        if process.no_call_s >= AWAY_S or process.trouble or process.state in ("T", "t"):
            return
        for one in process.operations:
            if one.age_s >= LONG_S and not stands(one):
                yield Wait(number, self.rank_at(one.peer), one)

    def _state(self, number):
        process = self.processes[number]
        if number >= self.seen:
            return self._state_unseen(process.addresses[0])
        if process.state in ("T", "t"):
            return STOPPED
        if process.trouble:
            return DEAF
        if not process.addresses:
            return OUTSIDE
        if process.no_call_s >= AWAY_S:
            return AWAY
        if any(wait.source == number for wait in self.waits):
            return WAITING
        return BUSY if any(not stands(one) for one in process.operations) else POLLING

    def _state_unseen(self, address):
        node = self.node_of(address)
        # An agent can be down on a node whose ranks are well, and a rank can run where this user may not look.
        if node is None or self.heard.get(address, SILENT_S) < SILENT_S:
            return UNSEEN
        return LOST if node.trouble or node.down else ENDED

    def waiting_for(self, ranks):
        """The ranks that wait for these, at first or second hand."""
        if not any(wait.target in ranks or wait.target < 0 for wait in self.waits):
            return set()
        reached, before = set(ranks), None
        while before != len(reached):
            before = len(reached)
            reached |= {wait.source for wait in self.waits if wait.target in reached or wait.target < 0 and reached - {wait.source}}
        return reached - set(ranks)

    def absent_ranks(self):
        """The numbers of ranks that no node has reported, of a job whose launcher has told the size."""
        size = max((process.size for process in self.processes), default=0)
        return sorted(set(range(size)) - {process.rank for process in self.processes})


def stands(operation):
    """MPI libraries keep receives from any peer posted for as long as a window lives, several of the same kind."""
    return operation.peer == ANY and operation.count > 1


def has_windows(process):
    return any(stands(one) for one in process.operations)


class _Finder:
    """Each function yields the causes of one kind."""

    def __init__(self, graph, span_s):
        self._graph, self._span_s = graph, span_s

    def _in_state(self, *states):
        return [number for number, state in enumerate(self._graph.states) if state in states]

    def _cause(self, kind, ranks, **more):
        graph = self._graph
        waits = sorted((wait for wait in graph.waits if wait.target in ranks), key=lambda wait: -wait.operation.age_s)
        waiting = graph.waiting_for(ranks)
        longest = max((wait.operation.age_s for wait in graph.waits if wait.source in waiting), default=0.0)
        return Cause(kind, list(ranks), len(waiting), longest, **{"waits": waits, **more})

    def _each(self, kind, states, needed):
        """A cause for all ranks in these states that have the same number of waiting ranks; needed: only those for which others wait."""
        found = {}
        for number in self._in_state(*states):
            waiting = frozenset(self._graph.waiting_for([number]))
            if waiting or not needed:
                found.setdefault(waiting, []).append(number)
        return [self._cause(kind, ranks) for ranks in found.values()]

    def node(self):
        graph, by_node = self._graph, {}
        for number in self._in_state(LOST):
            node = graph.node_of(graph.processes[number].addresses[0])
            by_node.setdefault(node.name, (node, []))[1].append(number)
        for node, ranks in by_node.values():
            yield self._cause("node", ranks, node=node)
        down = [node for node in graph.nodes if node.down or node.trouble]
        if not by_node and graph.absent_ranks() and len(down) == 1 and not graph.is_heard(down[0]):
            yield Cause("node", [], len(self._in_state(WAITING)), max((wait.operation.age_s for wait in graph.waits), default=0.0), node=down[0])

    def ended(self):
        yield from self._each("ended", [ENDED], bool(self._graph.waits))

    def stopped(self):
        yield from self._each("stopped", [STOPPED], False)

    def deaf(self):
        yield from self._each("deaf", [DEAF], False)

    def parted(self):
        """Ranks that run, but do not hear each other."""
        graph, pairs = self._graph, {}
        for number in range(graph.seen):
            for peer in graph.processes[number].peers:
                other = graph.rank_at(peer.address)
                if graph.states[number] in (STOPPED, DEAF) or not 0 <= other < graph.seen or graph.states[other] in (STOPPED, DEAF):
                    continue
                if peer.lost or peer.owes and min(peer.silent_s, self._silence_back(other, number, peer.silent_s)) >= CUT_S:
                    nodes = tuple(sorted((graph.processes[number].node, graph.processes[other].node)))
                    pairs.setdefault(nodes, []).append((number, other, peer))
        for found in pairs.values():
            number, other, peer = max(found, key=lambda each: max(each[2].silent_s, each[2].lost_s))
            cause = self._cause("parted", sorted({each[0] for each in found} | {each[1] for each in found}))
            cause.waits = [Wait(number, other, Operation("", peer.address, peer.lost, age_s=max(peer.silent_s, peer.lost_s)))]
            yield cause

    def _silence_back(self, number, other, default):
        """For how long a rank has heard nothing from another one."""
        addresses = self._graph.processes[other].addresses
        return next((peer.silent_s for peer in self._graph.processes[number].peers if peer.address in addresses), default)

    def launcher(self):
        """A launcher that is stopped, or whose messages nothing answers. Ranks that wait for no rank can wait for it."""
        graph, found = self._graph, {}
        ends = {state for number, state in enumerate(graph.states) if state != WAITING}
        if ends & {STOPPED, LOST} or not ends:
            return
        for number in range(graph.seen):
            launcher = graph.processes[number].launcher
            if launcher.silent or launcher.state in ("T", "t"):
                found.setdefault((graph.processes[number].node, launcher.pid), []).append(number)
        for ranks in found.values():
            cause = self._cause("launcher", ranks, launcher=graph.processes[ranks[0]].launcher)
            cause.waiting = graph.seen
            yield cause

    def away(self):
        yield from self._each("away", [AWAY], True)

    def outside(self):
        if self._graph.waits or self._in_state(POLLING):
            yield from self._each("outside", [OUTSIDE], False)

    def unseen(self):
        yield from self._each("unseen", [UNSEEN], True)

    def _locked(self):
        """The ranks from which every way of waiting leads back to one of them. A rank that was not seen could serve those that wait
        for any, and those that do not hear each other wait for the network."""
        graph = self._graph
        free = set(range(len(graph.processes))) - {wait.source for wait in graph.waits if wait.operation.age_s >= self._span_s}
        free |= {number for cause in self.parted() for number in cause.ranks}
        if graph.absent_ranks():
            free |= {wait.source for wait in graph.waits if wait.target < 0}
        before = None
        while before != len(free):
            before = len(free)
            free |= {wait.source for wait in graph.waits if wait.target in free or wait.target < 0 and free - {wait.source}}
        return set(range(graph.seen)) - free

    def deadlock(self):
        graph, locked = self._graph, self._locked()
        if not locked:
            return
        waits = [wait for wait in graph.waits if wait.source in locked]
        wanted = {wait.target for wait in waits if wait.operation.waits_for == TO_RECEIVE}
        if len(wanted) == 1 and locked <= graph.waiting_for(wanted) | wanted and not _cycle(waits, locked - wanted):
            yield self._cause("receive", wanted)
            return
        mismatched = self._mismatched(waits)
        if len(mismatched) == 1:
            yield self._cause("message", mismatched)
            return
        cycle = _cycle(waits, locked)
        ranks = [wait.source for wait in cycle]
        waiting = graph.waiting_for(ranks)
        yield Cause("deadlock", ranks, len(waiting), max(wait.operation.age_s for wait in cycle), cycle)

    def _mismatched(self, waits):
        """Ranks that wait for a message from a peer and have got another one from it, which no receive matches."""
        graph = self._graph
        return {wait.source for wait in waits if "receive" in wait.operation.kind and wait.operation.done_bytes == 0
                and any(wait.target in (-1, graph.rank_at(message.peer)) for message in graph.processes[wait.source].messages)}

    def windows(self):
        """Ranks that wait inside their MPI library for messages from any peer, as those do that wait for the lock of a window. Some
        libraries show that they have windows."""
        graph, polling = self._graph, self._in_state(POLLING)
        ranks = [number for number in polling if has_windows(graph.processes[number])]
        asked = [wait for wait in graph.waits if wait.target in polling]
        if len(ranks) < 2 and asked and all(wait.operation.waits_for != TO_RECEIVE for wait in asked):
            ranks = polling
        if len(ranks) > 1:
            yield self._cause("windows", ranks)

    def repeating(self):
        """Ranks that repeat atomics, as those do that wait for locks. A lock can lie in the memory of a rank that waits for it."""
        graph = self._graph
        waits = [Wait(number, graph.rank_at(one.peer), one) for number in self._in_state(BUSY) for one in graph.processes[number].operations
                 if one.kind == "atomic"]
        sources = {wait.source for wait in waits}
        cycle = _cycle([wait for wait in waits if wait.source != wait.target], sources)
        if cycle:
            yield self._cause("repeating", [wait.source for wait in cycle], waits=cycle)
        elif len(sources) > 1 and graph.waiting_for(sources):
            yield self._cause("repeating", sorted(sources), waits=waits)

    def idle(self):
        """Ranks that make calls but give others nothing."""
        windows = {number for cause in self.windows() for number in cause.ranks}
        for cause in self._each("idle", [POLLING], True):
            if not windows & set(cause.ranks):
                yield cause

    def busy(self):
        repeating = {number for cause in self.repeating() for number in cause.ranks}
        for cause in self._each("busy", [BUSY], True):
            if not repeating & set(cause.ranks):
                yield cause


def _cycle(waits, within):
    """A cycle of waits between these ranks, in its order; nothing if there is none."""
    after = {}
    for wait in sorted(waits, key=lambda wait: (wait.target < 0, -wait.operation.age_s)):
        if wait.source in within:
            after.setdefault(wait.source, []).append(wait)

    def steps(rank):
        for wait in after[rank]:
            yield from ((wait, target) for target in ([wait.target] if wait.target >= 0 else sorted(within - {rank})) if target in after)

    done = set()
    for start in sorted(after):
        place, way, stack = {start: 0}, [], [(start, steps(start))]  # depth first; `way` leads from each rank on the stack to the next
        while stack:
            rank, left = stack[-1]
            wait, target = next(left, (None, None))
            if wait is None:
                done.add(stack.pop()[0])
                del place[rank]
                del way[max(0, len(stack) - 1):]
            elif target in place:
                return [*way[place[target]:], wait]
            elif target not in done:
                place[target] = len(stack)
                way.append(wait)
                stack.append((target, steps(target)))
    return []


# The order in which kinds of causes are believed: what is certain to stop a job, before what may be its normal work.
_KINDS = ("node", "ended", "stopped", "parted", "deaf", "launcher", "deadlock", "away", "outside", "idle", "repeating", "windows", "unseen",
          "busy")


def causes(graph, span_s=LONG_S):
    """The causes, the most certain first; of one kind, that for which most ranks wait."""
    finder, found = _Finder(graph, max(span_s, LONG_S)), []
    for kind in _KINDS:
        found += sorted(getattr(finder, kind)(), key=lambda cause: -cause.waiting)
    return found
