"""Many agents, the shipped objects, on a simulated clock and a network that loses messages.

One heap of events: deliveries, and for each agent the time at which it must run next. Messages are not encoded, which
would take most of the time. One message in `sample` is encoded, to measure its size and to pass it through the gate.
"""
import heapq
import random
import struct
from itertools import count

from . import wire
from .agent import Agent

TAG = wire.tag("simulation")
KEY = b"0123456789abcdef"


class _Transport:
    def __init__(self, network, number):
        self._network, self._number = network, number

    def send(self, address, message):
        self._network.send(self._number, struct.unpack("!I", address[0])[0], message)

    def hello(self, message):
        self._network.hello(self._number, message)


class Network:
    """`loss` is the share of messages that get lost; `cut` holds pairs of nodes that cannot reach each other."""

    def __init__(self, nodes, seed, loss=0.01, delay=0.0005, sample=16):
        self.random = random.Random(seed)
        self.loss, self.delay, self.sample = loss, delay, sample
        self.now = 0.0
        self.dead, self.cut, self.changes = set(), set(), []
        self.bytes_sent = self.messages = 0
        self.agents = []
        self._events, self._order = [], count()
        self._wake = [float("inf")] * nodes
        for number in range(nodes):
            self.agents.append(self._agent(number, 1))
            self._schedule(number, 0.0)
            self.agents[number].start(0.0)

    def _agent(self, number, incarnation):
        name = f"node{number + 1:04}"
        return Agent(name, (struct.pack("!I", number), 7946), incarnation, random.Random(self.random.getrandbits(64)),
                     _Transport(self, number), lambda change: self.changes.append((name, change)))

    def know_each_other(self):
        """A cluster that has been up for long: no join is simulated."""
        records = [agent.membership.me.record() for agent in self.agents]
        for agent in self.agents:
            for record in records:
                agent.membership.merge(record, 0.0)
            agent.discovery.settle(0.0)
        self.changes.clear()

    def start(self, number, at):
        self._schedule(number, at)
        self.agents[number].start(at)

    def kill(self, number):
        self.dead.add(number)

    def restart(self, number):
        self.dead.discard(number)
        self.agents[number] = self._agent(number, self.agents[number].membership.me.incarnation + 1)
        self.start(number, self.now)

    def send(self, source, target, message):
        self.messages += 1
        if self.messages % self.sample == 0:
            data = wire.encode(message, TAG, KEY)
            assert wire.decode(data, TAG, KEY) == message
            self.bytes_sent += (len(data) + wire.OVERHEAD_BYTES) * self.sample
        if self.random.random() < self.loss or (source, target) in self.cut:
            return
        at = self.now + self.delay * (0.5 + self.random.random())
        heapq.heappush(self._events, (at, next(self._order), target, message, source))

    def hello(self, source, message):
        for target in range(len(self.agents)):
            if target != source and self.random.random() >= self.loss and (source, target) not in self.cut:
                heapq.heappush(self._events, (self.now + self.delay, next(self._order), target, message, source))
        self.bytes_sent += 2 * (len(wire.encode(message, TAG, KEY)) + wire.OVERHEAD_BYTES)  # two rails

    def _schedule(self, number, at):
        self._wake[number] = at
        heapq.heappush(self._events, (at, next(self._order), number, None, 0))

    def run(self, until):
        events, wakes = self._events, self._wake
        while events and events[0][0] <= until:
            at, _, number, message, source = heapq.heappop(events)
            if number in self.dead:
                continue
            self.now = at
            agent = self.agents[number]
            if message is None:
                if at != wakes[number]:
                    continue  # an earlier wake-up has replaced this one
                wakes[number] = float("inf")
                agent.run(at)
            else:
                agent.receive(message, (struct.pack("!I", source), 7946), at)
            deadline = agent.next_deadline()
            if deadline < wakes[number]:
                self._schedule(number, max(deadline, at))
        self.now = until

    def states(self, number):
        """The state of a node as each living agent sees it."""
        name = self.agents[number].name
        return [agent.membership.members[name].state if name in agent.membership.members else None
                for other, agent in enumerate(self.agents) if other not in self.dead and other != number]
