"""One agent: its table, its detector, its gossip and its discovery, behind one entry for what arrives and one for time.

Everything comes as an argument: the time, the randomness, and the transport, which has
    send(address, message)   to one agent
    hello(message)           to the multicast group on every rail, and to the addresses of the list
The caller runs `run(now)` at `next_deadline()` and hands every message that passed the gate (wire.py) to `receive`.

Every message between agents carries news. While there is news, the agent also sends messages for it alone, every tenth
of a second. So all of 1,000 nodes know important news within a second, and a cluster without news sends probes only.

Peers refuse an isolated node. They answer only its probes, so that it can be seen whether it lives, and believe nothing
that it says about others.
"""
from . import wire
from .detector import Detector
from .discovery import PULL_BYTES, Discovery
from .gossip import Gossip
from .membership import Membership

GOSSIP_PERIOD = 0.1
GOSSIP_FANOUT = 3
GOSSIP_RECORDS = 8
PIGGYBACK_RECORDS = 4


class Agent:
    def __init__(self, name, address, incarnation, random, transport, changed, highest=lambda: wire.NUMBER_MAX):
        self.membership = Membership(name, address, incarnation, changed, highest)
        self.detector = Detector(self.membership, random, self._send, self._declare)
        self.discovery = Discovery(self.membership, random, self._send, self._hello)
        self._random, self._transport = random, transport
        self._gossip = Gossip()
        self._gossip_at = float("inf")

    @property
    def name(self):
        return self.membership.name

    def start(self, now):
        self.membership.start(now)
        self.detector.start(now)
        self.discovery.start(now)

    def next_deadline(self):
        return min(self._gossip_at, self.detector.next_deadline(), self.discovery.next_deadline(),
                   self.membership.next_deadline())

    def run(self, now):
        self.membership.run(now)
        self.detector.run(now)
        self.discovery.run(now)
        if now >= self._gossip_at:
            self._spread(now)

    def receive(self, message, address, now):
        if message.sender == self.name:
            return  # its own hello, or a second node of this name, which findings.py reports
        sender = self.membership.members.get(message.sender)
        if sender is not None and sender.order == wire.ISOLATE:
            if message.kind in (wire.PING, wire.ACK):
                for record in message.records:
                    if record.name == sender.name and record.order_stamp <= sender.order_stamp:
                        self._learn(record, now)
                self._answer(message, address, now)
            return
        known = sender is not None and sender.status < wire.DOWN
        for record in message.records:
            self._learn(record, now, message.kind != wire.PAGE)
        self.discovery.heard_of(message.sender, address, now)
        if message.kind == wire.HELLO:
            self.discovery.on_hello(message, address, not known)
        elif message.kind == wire.PULL:
            self.discovery.on_pull(message, now)
        elif message.kind == wire.PAGE:
            self.discovery.on_page(message, now)
        else:
            self._answer(message, address, now)

    def _answer(self, message, address, now):
        if message.kind == wire.PING:
            if message.target == self.name:
                self._send(address, wire.ACK, message.sequence, self.name)
        elif message.kind == wire.ACK:
            self.detector.on_ack(message, now)
        elif message.kind == wire.NACK:
            self.detector.on_nack(message)
        elif message.kind == wire.PING_REQUEST:
            self.detector.on_request(message, address, now)

    def order(self, name, order, reason, now):
        """Drains or isolates a node, or resumes it; every agent hears of it."""
        self.membership.order(name, order, reason, now)
        self._pass_on(name, now)

    def leave(self):
        """The goodbye of an agent that is stopped, so that others need not detect its end."""
        me = self.membership.me
        me.status, me.reason = wire.LEFT, "its agent was stopped"
        living = self.membership.living()
        for name in self._random.sample(living, min(2 * GOSSIP_FANOUT, len(living))):
            self._transport.send(self.membership.members[name].address,
                                 wire.Message(wire.GOSSIP, 0, self.name, name, 0, (me.record(),)))

    def _learn(self, record, now, passing=True):
        """Others already know the content of a page, unless it is about this node."""
        news = self.membership.merge(record, now)
        if (self.detector.on_news(record, now) or news) and (passing or record.name == self.name):
            self._pass_on(record.name, now, record if not news else None)

    def _declare(self, name, status, reason, now):
        if name not in self.membership.members:
            return
        news = self.membership.declare(name, status, reason, now)
        member = self.membership.members[name]
        own = member.record()._replace(reason=reason) if status == wire.SUSPECT else None
        if self.detector.on_news(own or member.record(), now) or news:
            self._pass_on(name, now, own)

    def _pass_on(self, name, now, record=None):
        self._gossip.add(record or self.membership.members[name].record(), len(self.membership.members))
        if self._gossip_at == float("inf"):
            self._gossip_at = now + GOSSIP_PERIOD * self._random.random()

    def _spread(self, now):
        living = self.membership.living()
        for name in self._random.sample(living, min(GOSSIP_FANOUT, len(living))):
            records = self._gossip.take(GOSSIP_RECORDS)
            if not records:
                break
            self._transport.send(self.membership.members[name].address,
                                 wire.Message(wire.GOSSIP, 0, self.name, name, 0, records))
        self._gossip_at = now + GOSSIP_PERIOD if len(self._gossip) and living else float("inf")

    def _send(self, address, kind, sequence, target, about="", number=0, records=None):
        """A message with news, and with the record of `about`. It has this node's own record too unless it only
        answers. A pull is padded so that its longer answer is permitted."""
        if records is None:
            records = list(self._gossip.take(PIGGYBACK_RECORDS))
            if about and about in self.membership.members:
                member = self.membership.members[about]
                if member.status != wire.ALIVE or member.order:
                    records.append(member.record())
            if kind in (wire.GOSSIP, wire.PULL):
                records.append(self.membership.me.record())
        message = wire.Message(kind, sequence, self.name, target, number, tuple(records))
        if kind == wire.PULL:
            message = message._replace(padding=max(0, PULL_BYTES - wire.size_of(message)))
        self._transport.send(address, message)

    def _hello(self):
        self._transport.hello(wire.Message(wire.HELLO, 0, self.name, "", 0, (self.membership.me.record(),)))
