"""What is known about each node, and which news replaces which.

Invariants. Only the node itself raises its incarnation: when it starts, and when it refutes that it is suspect or down.
News about a node replaces what is known if its incarnation is higher, or the same and its status worse: alive, suspect,
down (SWIM, section 4.2). So every agent ends with the same table, in whatever order news arrives.

Without a key any host can claim a high incarnation for a node, and the node then exceeds it. So agents believe no
incarnation above `highest()`. With a key that is the limit of the wire; without one it is little more than the seconds
since 1970, from which incarnations are made (daemon.py). After a lie others believe the node again within seconds.

An operator's action (drain, isolate, resume) is independent of that: the highest stamp wins, and among equal stamps the
stricter action.

People see one word that combines both, from this agent's view: up, suspect, isolated, down, returned. A node
that was down is `returned` for a minute after it is back.
"""
from dataclasses import dataclass
from typing import NamedTuple

from . import wire

UP, SUSPECT, ISOLATED, DOWN, RETURNED = "up", "suspect", "isolated", "down", "returned"
STATES = (UP, SUSPECT, ISOLATED, DOWN, RETURNED)
RETURNED_SECONDS = 60
MEMBERS_MAX = 5000


class Change(NamedTuple):
    """A node's state has changed, as seen from here."""
    name: str
    old: str
    new: str
    reason: str
    at: float


@dataclass
class Member:
    name: str
    incarnation: int
    status: int
    address: tuple
    reason: str = ""
    order: int = wire.NO_ORDER
    order_stamp: int = 0
    order_reason: str = ""
    state: str = UP
    since: float = 0.0
    returned_until: float = 0.0

    def record(self):
        return wire.Record(self.name, self.incarnation, self.status, self.address, self.reason, self.order,
                           self.order_stamp, self.order_reason)

    def visible(self, now):
        """The state that people see, and its reason."""
        if self.status >= wire.DOWN:
            return DOWN, self.reason
        if self.order == wire.ISOLATE:
            return ISOLATED, self.order_reason
        if self.status == wire.SUSPECT:
            return SUSPECT, f"does not answer {self.reason}"
        if now < self.returned_until:
            return RETURNED, "is back after it was down"
        return UP, ""


class Membership:
    """The table of one agent. `changed(change)` is called for each state that changes; `highest()` is the highest
    incarnation that is believed."""

    def __init__(self, name, address, incarnation, changed, highest=lambda: wire.NUMBER_MAX):
        self.name, self._highest = name, highest
        self.members = {name: Member(name, incarnation, wire.ALIVE, address)}
        self._changed = changed
        self._returned = {}
        self._living = None

    @property
    def me(self):
        return self.members[self.name]

    def start(self, now):
        self.me.since = now

    def living(self):
        """Names of the other nodes that are not down, in order."""
        if self._living is None:
            self._living = sorted(name for name, member in self.members.items()
                                  if member.status < wire.DOWN and name != self.name)
        return self._living

    def merge(self, record, now):
        """Takes over a record if it is news; True if it is news, which must be passed on."""
        if record.incarnation > self._highest():
            return False
        if record.name == self.name:
            return self._about_me(record, now)
        member = self.members.get(record.name)
        if member is None:
            return self._add(record, now)
        ordered = self._merge_order(member, record)
        fresh = record.incarnation > member.incarnation or (
            record.incarnation == member.incarnation and record.status > member.status)
        if fresh:
            if member.status == wire.DOWN and record.status == wire.ALIVE:
                member.returned_until = now + RETURNED_SECONDS
                self._returned[member.name] = member
            if (member.status < wire.DOWN) != (record.status < wire.DOWN):
                self._living = None
            member.incarnation, member.status, member.reason = record.incarnation, record.status, record.reason
            if record.status == wire.ALIVE:
                member.address = record.address
        if fresh or ordered:
            self._show(member, now)
        return fresh or ordered

    def _add(self, record, now):
        if len(self.members) >= MEMBERS_MAX:
            return False
        member = Member(*record)
        member.state, reason = member.visible(now)
        member.since = now
        self.members[record.name] = member
        self._living = None
        self._changed(Change(record.name, "", member.state, reason or "first seen", now))
        return True

    def _about_me(self, record, now):
        """News about this node itself: it refutes a worse status by a higher incarnation."""
        ordered = self._merge_order(self.me, record)
        refuted = record.incarnation > self.me.incarnation or (
            record.status != wire.ALIVE and record.incarnation == self.me.incarnation)
        if refuted:
            self.me.incarnation = min(record.incarnation + 1, wire.NUMBER_MAX)
        if ordered:
            self._show(self.me, now)
        return refuted or ordered

    @staticmethod
    def _merge_order(member, record):
        if (record.order_stamp, record.order) <= (member.order_stamp, member.order):
            return False
        member.order, member.order_stamp, member.order_reason = record.order, record.order_stamp, record.order_reason
        return True

    def declare(self, name, status, reason, now):
        """Records what this agent itself found out about another node."""
        member = self.members[name]
        return self.merge(wire.Record(name, member.incarnation, status, member.address, reason), now)

    def order(self, name, order, reason, now):
        """Records an operator's action, with a stamp newer than every known one."""
        member = self.members[name]
        stamp = min(1 + max(known.order_stamp for known in self.members.values()), wire.NUMBER_MAX)
        member.order, member.order_stamp, member.order_reason = order, stamp, reason
        self._show(member, now)

    def forget(self, name):
        """Removes a node that is down for good."""
        if name != self.name and self.members[name].status >= wire.DOWN:
            del self.members[name]
            self._returned.pop(name, None)
            return True
        return False

    def run(self, now):
        """A node that returned a minute ago becomes up."""
        for name, member in list(self._returned.items()):
            if now >= member.returned_until:
                del self._returned[name]
                self._show(member, now)

    def next_deadline(self):
        return min((member.returned_until for member in self._returned.values()), default=float("inf"))

    def _show(self, member, now):
        state, reason = member.visible(now)
        if state != member.state:
            change = Change(member.name, member.state, state, reason, now)
            member.state, member.since = state, now
            self._changed(change)
