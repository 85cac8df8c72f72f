"""Which node to probe, what its silence means, and when.

Every period this agent probes the node that follows it in the order of names, and every other period one at random, in
rounds in which each node comes once. The first finds a dead node within a period, however many nodes there are. The
second finds failures that the first misses where one pair cannot communicate. If a node does not answer in time, the
agent probes it through three others. If none of them gets an answer by the end of the period, the node is suspect. It
is down when its suspicion runs out (suspicion.py), unless it refutes. A successor that is suspect or silent may be one
of several that died at once, and no other agent probes those behind it. So this agent, while itself healthy, probes the
next one in the same period.

Lifeguard's local health: if an agent's probes fail and its helpers do not even report that they got no answer, the
agent itself is probably slow. It then waits longer. A host that was paused for a while says so through `late()`.

Timers: the two probes, for each probe the time for the direct and for the indirect answer, one for each suspect.
"""
import bisect

from . import wire
from .suspicion import Suspicion

PERIOD = 0.5
ACK_TIMEOUT = 0.2
NACK_TIMEOUT = 0.25  # after this, a helper reports that it got no answer
HELPERS = 3
HEALTH_MAX = 4
DEAD_PROBE_PERIOD = 10.0  # a dead node is probed now and then, so that two halves of a network find each other again


class _Probe:
    __slots__ = ("name", "direct_until", "until", "follows", "indirect", "nacks", "asked")

    def __init__(self, name, direct_until, until, follows):
        self.name, self.direct_until, self.until, self.follows = name, direct_until, until, follows
        self.indirect, self.nacks, self.asked = False, 0, 0


class _Errand:
    """A probe made for another node."""
    __slots__ = ("address", "sequence", "name", "until")

    def __init__(self, address, sequence, name, until):
        self.address, self.sequence, self.name, self.until = address, sequence, name, until


class Detector:
    """`send(address, kind, sequence, target, about)` sends a message with news; `about` is a node whose record must be
    in it. `declare(name, status, reason, now)` records the verdict."""

    def __init__(self, membership, random, send, declare):
        self._membership, self._random = membership, random
        self._send, self._declare = send, declare
        self._sequence = random.getrandbits(32)
        self._probes = {}  # sequence -> probe
        self._errands = {}
        self._suspicions = {}
        self._round = []
        self._ring_at = self._random_at = self._dead_at = float("inf")
        self.health = 0

    def start(self, now):
        self._ring_at = now + PERIOD * self._random.random()
        self._random_at = now + 2 * PERIOD * self._random.random()
        self._dead_at = now + DEAD_PROBE_PERIOD

    def late(self):
        """This host was paused for a while: overdue timers say nothing about others."""
        self.health = min(HEALTH_MAX, self.health + 1)
        self._probes.clear()

    def next_deadline(self):
        deadline = min(self._ring_at, self._random_at, self._dead_at)
        for probe in self._probes.values():
            deadline = min(deadline, probe.until if probe.indirect else probe.direct_until)
        for errand in self._errands.values():
            deadline = min(deadline, errand.until)
        for suspicion in self._suspicions.values():
            deadline = min(deadline, suspicion.deadline)
        return deadline

    def run(self, now):
        self._run_probes(now)
        for sequence, errand in list(self._errands.items()):
            if now >= errand.until:
                del self._errands[sequence]
                self._send(errand.address, wire.NACK, errand.sequence, errand.name)
        for name, suspicion in list(self._suspicions.items()):
            if now >= suspicion.deadline:
                del self._suspicions[name]
                self._declare(name, wire.DOWN, "no answer to probes", now)
        if now >= self._ring_at:
            self._ring_at = now + PERIOD * (1 + self.health)
            self._probe(self._successor(self._membership.name), now, follows=True)
        if now >= self._random_at:
            self._random_at = now + 2 * PERIOD * (1 + self.health)
            self._probe(self._next_of_round(), now)
        if now >= self._dead_at:
            self._dead_at = now + DEAD_PROBE_PERIOD
            dead = [member for member in self._membership.members.values() if member.status == wire.DOWN]
            if dead:
                member = self._random.choice(dead)
                self._send(member.address, wire.PING, self._new_sequence(), member.name, member.name)

    def _run_probes(self, now):
        for sequence, probe in list(self._probes.items()):
            if not probe.indirect and now >= probe.direct_until:
                self._ask_helpers(sequence, probe)
                if probe.follows and not self.health:
                    self._probe(self._successor(probe.name), now, follows=True)
            if now >= probe.until:
                del self._probes[sequence]
                # Helpers that reply, even that they got no answer, show that this agent is healthy.
                slow = probe.asked > 0 and probe.nacks == 0
                self.health = min(HEALTH_MAX, self.health + 1) if slow else self.health
                self._declare(probe.name, wire.SUSPECT, self._membership.name, now)

    def _ask_helpers(self, sequence, probe):
        probe.indirect = True
        members = self._membership.members
        able = [name for name in self._membership.living() if name != probe.name
                and members[name].status == wire.ALIVE and members[name].order != wire.ISOLATE]
        for name in self._random.sample(able, min(HELPERS, len(able))):
            probe.asked += 1
            self._send(members[name].address, wire.PING_REQUEST, sequence, probe.name, probe.name)
        # One lost probe does not mean dead: probe the node itself again.
        self._send(members[probe.name].address, wire.PING, sequence, probe.name, probe.name)

    def _new_sequence(self):
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        return self._sequence

    def _probe(self, name, now, follows=False):
        if name is None:
            return
        sequence, patience = self._new_sequence(), 1 + self.health
        self._probes[sequence] = _Probe(name, now + ACK_TIMEOUT * patience, now + PERIOD * patience, follows)
        self._send(self._membership.members[name].address, wire.PING, sequence, name, name)

    def _successor(self, name):
        """The node after this one that no agent suspects yet."""
        living, members = self._membership.living(), self._membership.members
        first = bisect.bisect(living, name)
        for place in range(first, first + len(living)):
            found = living[place % len(living)]
            if members[found].status == wire.ALIVE:
                return found if found != name else None
        return None

    def _next_of_round(self):
        members = self._membership.members
        while True:
            if not self._round:
                self._round = list(self._membership.living())
                self._random.shuffle(self._round)
                if not self._round:
                    return None
            name = self._round.pop()
            if name in members and members[name].status < wire.DOWN:
                return name

    def on_ack(self, message, now):
        errand = self._errands.pop(message.sequence, None)
        if errand is not None:
            self._send(errand.address, wire.ACK, errand.sequence, errand.name)
            return
        # The answer that a helper forwards names the answering node as its target.
        probe = self._probes.get(message.sequence)
        if probe is not None and probe.name in (message.sender, message.target):
            del self._probes[message.sequence]
            self.health = max(0, self.health - 1)

    def on_nack(self, message):
        probe = self._probes.get(message.sequence)
        if probe is not None:
            probe.nacks += 1

    def on_request(self, message, address, now):
        """Another agent asks this one to probe a node that does not answer it."""
        member = self._membership.members.get(message.target)
        if member is None or len(self._errands) >= 64:
            return
        sequence = self._new_sequence()
        self._errands[sequence] = _Errand(address, message.sequence, message.target, now + NACK_TIMEOUT)
        self._send(member.address, wire.PING, sequence, message.target, message.target)

    def on_news(self, record, now):
        """Called after the table accepted a record or knew it already. True if the record confirms a suspicion, which
        others should hear."""
        member = self._membership.members.get(record.name)
        if member is None or member.status != wire.SUSPECT:
            self._suspicions.pop(record.name, None)
            return False
        if record.status != wire.SUSPECT or record.incarnation != member.incarnation:
            return False
        known = self._suspicions.get(record.name)
        if known is None:
            self._suspicions[record.name] = Suspicion(record.reason, now, len(self._membership.members))
            return False
        return known.confirm(record.reason)
