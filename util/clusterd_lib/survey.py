"""What this node measures, and what other nodes report about themselves: cards, links, wrong hellos, findings, load.

A card has a node's name, rails and port. The agent fetches it when it first sees a node or sees it again, and now and
then later, to notice a changed MTU.
"""
import asyncio
import socket
import time
from typing import NamedTuple

from . import checked
from .errors import AgentError
from .measure import findings, rails
from .measure.clock import ClockWatch
from .measure.links import LinkMonitor
from .measure.load import Load
from .protocol import wire

CARD_SECONDS = 60.0
CARD_BYTES = 1600  # one connection, both directions, headers included, with two rails
SAMPLE_SECONDS = 2.0
HEARD_SECONDS = 3600


def card_pause(nodes):
    """Seconds after which the cards of so many others are fetched again."""
    return CARD_SECONDS * max(1.0, nodes / 100)


def card_bytes_per_second(nodes):
    """Upper bound of what a node sends: for the cards that it fetches, and for its own card, which as many others
    fetch."""
    return (nodes - 1) / card_pause(nodes - 1) * CARD_BYTES


class Route(NamedTuple):
    """The addresses of a node that has no measured link."""
    rail: int
    address: tuple  # (text, port)


def clocks():
    return time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)


class Survey:
    def __init__(self, settings, key, transport, history, ask):
        self._settings, self._key, self._transport, self._history, self._ask = settings, key, transport, history, ask
        self.monitor = LinkMonitor(self._send_echo, self._link_changed)
        self.load = Load()
        self.rails, self.cards = [], {}
        self._last_cards = {}  # of nodes that are down, too: crossed cables can make a node down
        self._hello_routes = {}  # node -> on which rail its latest hello came, and from where
        self._heard = {}  # (peer, its rail) -> {rail of this node: when}
        self._fetching = set()
        self._known_findings = set()
        self._clock = ClockWatch(*clocks())

    def open(self):
        self.rails = rails.read(self._settings.interfaces)
        self._transport.open(self.rails)

    def card(self):
        return {"name": self._settings.name, "port": self._settings.port, "rails": self.rails}

    def _send_echo(self, rail, address, sequence, size):
        self._transport.send_echo(rail, address, wire.Message(wire.ECHO, sequence, self._settings.name, "", rail), size)

    def _link_changed(self, link, old):
        if old != "unknown":
            self._history.add("link", link.peer, f"rail {link.rail} to {link.peer} is {link.state}")

    def on_hello(self, message, rail, address, now):
        if rail is None or message.number >= rails.RAILS_MAX:
            return
        self._heard.setdefault((message.sender, message.number), {})[rail] = now
        self._hello_routes[message.sender] = Route(rail, address)
        for record in message.records:
            if record.name == message.sender and len(record.address[0]) == 4:
                self._transport.names_of[socket.inet_ntop(socket.AF_INET, record.address[0]), record.address[1]] = record.name

    def routes(self, name):
        """The rails by which to reach a node: those that are up. If none is up or measured, all that the node has
        named; if it has named none, the rail on which its hello came."""
        card = self._last_cards.get(name)
        if card is None:
            return [self._hello_routes[name]] if name in self._hello_routes else []
        return self.monitor.usable(name) or [Route(number, (rail["address"], card["port"]))
                                             for number, rail in enumerate(card["rails"][:len(self.rails)])]

    def address_of(self, name):
        """The address for a connection to a node; empty if only that of its record is known."""
        routes = self.routes(name)
        return min(routes, key=lambda route: getattr(route, "lost_in_a_row", 0)).address[0] if routes else ""

    def addresses_of(self, name):
        """All addresses of a node, even of one that is down."""
        card = self.card() if name == self._settings.name else self._last_cards.get(name)
        return [rail["address"] for rail in card["rails"]] if card else []

    def on_echo(self, message, address, rail):
        self._transport.answer_echo(rail, address, wire.Message(
            wire.ECHO_REPLY, message.sequence, self._settings.name, "", message.number))

    async def fetch_card(self, name, address):
        """Asks a node for its rails: one request at a time, over one rail after the other. If the node does not answer,
        the agent asks again later. The address is that of its record."""
        if name in self._fetching:
            return
        self._fetching.add(name)
        try:
            for known in [route.address[0] for route in self.routes(name)] or [address]:
                try:
                    self.set_card(name, checked.card(
                        await self._ask(name, known, self._settings.port, self._key, "card", seconds=3), name))
                    break
                except AgentError:
                    pass  # asked again until its card is here
        finally:
            self._fetching.discard(name)

    def set_card(self, name, card):
        """Takes over a card that has been checked (checked.py)."""
        self.cards[name] = self._last_cards[name] = card
        if card["rails"]:
            self._transport.names_of[card["rails"][0]["address"], card["port"]] = name
        self.monitor.set_peer(name, [
            (number, entry["address"], card["port"], min(entry["mtu"], self.rails[number]["mtu"]))
            for number, entry in enumerate(card["rails"][:len(self.rails)])], time.monotonic())

    def forget(self, name):
        """A node is down: stop measuring its links."""
        self.cards.pop(name, None)
        self.monitor.set_peer(name, [], time.monotonic())

    def node_at(self, address):
        """The node that has this address; empty if none is known."""
        return next((card["name"] for card in (self.card(), *self.cards.values())
                     if any(rail["address"] == address for rail in card["rails"])), "")

    def links(self):
        return [link.describe() for link in self.monitor.links.values()]

    def findings(self):
        me = self.card()
        now = time.monotonic()
        heard = {pair: [rail for rail, at in where.items() if now - at < HEARD_SECONDS] for pair, where in self._heard.items()}
        found = findings.of_cards([me, *self.cards.values()]) + findings.of_hellos(me, self._last_cards, heard) + \
            findings.of_links(self.links())
        if self._transport.refused["another version"]:
            found.append({"node": self._settings.name, "rail": None, "kind": "version",
                          "text": "an agent of another version sends messages to this node: install one version on all nodes"})
        return found

    def _tell_new_findings(self):
        present = {(entry["node"], entry["text"]) for entry in self.findings()}
        for node, text in sorted(present - self._known_findings):
            self._history.add("finding", node, text)
        self._known_findings = present

    async def run(self, living):
        """`living()` gives (name, address as text) of each node that is not down."""
        turn = 0
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            turn += 1
            self._look_here()
            nodes = living()
            refresh = turn % max(1, round(card_pause(len(nodes)) / SAMPLE_SECONDS)) == 0
            for name, address in nodes:
                if refresh or name not in self.cards:
                    await self.fetch_card(name, address)
            if turn % 5 == 0:
                self._tell_new_findings()

    def _look_here(self):
        """Looks at this node's load, clock and interfaces."""
        self.load.take(time.time(), [rail["device"] for rail in self.rails])
        jumped = self._clock.look(*clocks())
        if jumped:
            self._history.add("clock", self._settings.name, jumped)
        now = rails.read(self._settings.interfaces)
        if now != self.rails:
            moved = [(rail["device"], rail["address"]) for rail in now] != [
                (rail["device"], rail["address"]) for rail in self.rails]
            self.rails = now
            if moved:
                self._transport.open(now)
