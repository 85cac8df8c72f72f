"""Puts all runs of a plan in a fair order: repetition by repetition, group by group, one transport after the other. So
every transport meets the same changes of the machine."""
import time

from . import transports
from .errors import Skipped
from .plan import Group

EXTRA_ROUNDS = 2  # for turns that had no run with the processors near each other


def _bare_groups(items):
    """`stream` has its own run: it ends when a datagram is lost, and the other limits must not depend on that."""
    streams = [item for item in items if item.measure == "stream"]
    others = [item for item in items if item not in streams]
    return [Group(name, chosen) for name, chosen in (("bare", others), ("stream", streams)) if chosen]


def _groups(plan, place, transport):
    if transport.kind == "bare":
        return _bare_groups(plan.bare_inside if place.name == transports.INSIDE else plan.bare_between)
    groups = {"mpi": plan.mpi_groups, "crowd": plan.crowd_groups}.get(transport.kind, plan.groups)
    return [group for group in groups
            if place.name in group.places and (transport.kind != "ucx" or group.wait == "spin")]


def make_turns(plan, places, asked, libraries):
    """(place, transport, group) of everything in the plan; places and transports stay in their order within a group."""
    names = [group.name for group in plan.groups]
    turns = [(place, transport, group) for place in places
             for transport in transports.choose(place.name, asked, libraries, place.devices)
             for group in _groups(plan, place, transport)]
    return sorted(turns, key=lambda turn: names.index(turn[2].name) if turn[2].name in names else len(names))


def beside_agents(turns):
    """Runs each turn of ours twice in a separate node: without agents, then with them."""
    for place, transport, group in turns:
        yield place, transport, group
        if transport.is_ours and place.cluster:
            yield place, transports.with_agents(transport), group


def beside_keys(turns):
    """Runs each turn of ours three times: without a key, then with frames authenticated, then with frames encrypted."""
    for place, transport, group in turns:
        yield place, transport, group
        if transport.is_ours:
            for end in transports.KEYED:
                yield place, transports.with_key(transport, end), group


class Schedule:
    """Runs the turns and reports progress to `say`."""

    def __init__(self, runner, turns, repetitions, extra_rounds, collected, say):
        self.runner = runner
        self.turns = turns
        self.repetitions = repetitions
        self.extra_rounds = extra_rounds if repetitions > 1 else 0
        self.collected = collected
        self.say = say
        self.skipped_turns = set()
        self.started = time.monotonic()
        self.done = 0

    def _say_turn(self, place, transport, group, round_text, total):
        passed = time.monotonic() - self.started
        rest = f", about {passed / self.done * (total - self.done):.0f} s to go" if self.done else ""
        self.say(f"[{self.done + 1}/{total}] {place.name}: {transport.name}, {group.name} ({round_text}){rest}")

    def _turn(self, place, transport, group, run):
        try:
            self.collected.add(place.name, transport, group, run, self.runner.run(place, transport, group))
        except Skipped as reason:
            self.skipped_turns.add((place.name, transport.name, group.name))
            self.collected.skip(place.name, transport, group, str(reason))
            self.say(f"      left out: {reason}")

    def run(self):
        total = len(self.turns) * self.repetitions
        for repetition in range(1, self.repetitions + 1):
            for place, transport, group in self.turns:
                self._say_turn(place, transport, group, f"run {repetition} of {self.repetitions}", total)
                if (place.name, transport.name, group.name) not in self.skipped_turns:
                    self._turn(place, transport, group, repetition)
                self.done += 1
        for extra in range(self.extra_rounds):
            far = [turn for turn in self.turns if self.collected.lacks_near_run(turn[0].name, turn[1], turn[2])]
            for place, transport, group in far:
                self.say(f"      the processors were far apart; again: {place.name}, {transport.name}, {group.name}")
                self._turn(place, transport, group, self.repetitions + 1 + extra)
