"""The process: protocol, measuring and answers on one event loop.

The loop wakes when the protocol or a link has something due, or something arrives. If it wakes late, because the host
was busy or suspended, the detector is notified: its overdue timers then say nothing about other nodes.
"""
import asyncio
import random
import signal
import socket
import sys
import time

from . import key as key_file
from . import query, roles
from .errors import AgentError
from .history import History
from .hooks import Hook
from .measure.endpoints import Endpoints
from .metrics import scrape
from .operations import Operations
from .passed_sockets import Passed
from .protocol import wire
from .protocol.agent import Agent
from .relay import Relay
from .remote import Remote
from .reports import Reports
from .survey import Survey
from .transport import Transport
from .view import View

LATE_SECONDS = 0.3
FAILED_SECONDS = 1.0  # pause after a turn that raised an error
AHEAD_SECONDS = 86400  # clocks differ between nodes, and a node raises its number when it refutes


class Daemon:
    def __init__(self, settings, loop):
        self.settings, self._loop = settings, loop
        self.key = key_file.read(settings.key_file)
        self.history = History()
        self.hook = Hook(settings.hook, lambda text: self.history.add("hook", settings.name, text))
        self._passed = Passed(query.LOCAL_NAME, settings.port)
        self.transport = Transport(loop, settings, self.key, self._received, self._passed.port_holder is not None)
        self.survey = Survey(settings, self.key, self.transport, self.history, query.ask)
        self.survey.open()
        address = self.survey.rails[0]["address"] if self.survey.rails else "127.0.0.1"
        self.agent = Agent(settings.name, (socket.inet_aton(address), settings.port), int(time.time()) & 0xFFFFFFFF,
                           random.SystemRandom(), self.transport, self._state_changed, self._highest_incarnation)
        self.transport.routes = self.survey.routes
        self.endpoints = Endpoints(settings.cluster_info, self.survey.node_at)
        self.reports = Reports(self.ask, self.living)
        self.relay = Relay(settings, self.history)
        self.view = View(self.agent, self.survey, self.endpoints, self.reports, self.history, self.relay)
        self.roles = roles.Roles(settings.look, settings.submit, settings.operate)
        self.operations = Operations(self)
        self.remote = Remote(self)
        metrics = scrape.Metrics(self, self.operations.refresh_endpoints, self.operations.is_member)
        self._server = query.Server(settings.name, self.key, self.operations.answer, metrics, metrics.is_known)
        self._timer, self._due, self._tasks = None, 0.0, []

    def _highest_incarnation(self):
        """An incarnation begins as the seconds since 1970. Without a key, agents believe no incarnation far beyond
        that."""
        return wire.NUMBER_MAX if self.key else min(int(time.time()) + AHEAD_SECONDS, wire.NUMBER_MAX)

    def living(self):
        """(name, address as text) of each other node that is not down."""
        members = self.agent.membership.members
        return [(name, self.survey.address_of(name) or socket.inet_ntop(socket.AF_INET, members[name].address[0]))
                for name in self.agent.membership.living()]

    async def ask(self, name, address, operation, arguments=None, seconds=query.SECONDS_MAX):
        return await query.ask(name, address, self.settings.port, self.key, operation, arguments, seconds)

    async def ask_node(self, name, operation, arguments=None, seconds=query.SECONDS_MAX):
        """The same for a node by name, over any rail that is up."""
        address = dict(self.living()).get(name)
        if address is None:
            raise AgentError(f"{name} is down or unknown")
        return await self.ask(name, address, operation, arguments, seconds)

    def _state_changed(self, change):
        self.history.add("state", change.name, f"{change.new}{': ' + change.reason if change.reason else ''}")
        self.hook.notify(change)
        if change.new == "down":
            self.survey.forget(change.name)
        elif change.name != self.settings.name and change.name not in self.survey.cards:
            self._loop.call_soon(self._fetch_card, change.name)

    def _fetch_card(self, name):
        address = dict(self.living()).get(name)
        if address and len(self.agent.membership.members) <= 100:  # in large clusters the survey fetches it later
            self._spawn(self.survey.fetch_card(name, address))

    def _spawn(self, work):
        task = self._loop.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    @staticmethod
    async def _again_and_again(work):
        """Runs a task as long as the agent runs: starts it again if it fails."""
        while True:
            try:
                await work()
            except Exception as error:  # pylint: disable=broad-exception-caught
                print(f"clusterd: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            await asyncio.sleep(FAILED_SECONDS)

    def _ended(self, task):
        self._tasks.remove(task)
        if not task.cancelled() and task.exception():
            print(f"clusterd: {type(task.exception()).__name__}: {task.exception()}", file=sys.stderr, flush=True)

    def _received(self, message, address, rail, by_hello):
        try:
            self._take(message, address, rail, by_hello, time.monotonic())
        finally:
            self._arm()

    def _take(self, message, address, rail, by_hello, now):
        if message.kind == wire.ECHO:
            self.survey.on_echo(message, address, rail)
        elif message.kind == wire.ECHO_REPLY:
            self.survey.monitor.on_reply(message.sequence, message.sender, now)
        else:
            self.agent.receive(message, (socket.inet_aton(address[0]), address[1]), now)
            known = message.sender in self.agent.membership.members and message.sender != self.settings.name
            if by_hello and message.kind == wire.HELLO and known:
                self.survey.on_hello(message, rail, address, now)

    def rearm(self):
        """Wakes the loop after a call that set a new deadline."""
        self._arm()

    def _arm(self, not_before=0.0):
        due = max(not_before, min(self.agent.next_deadline(), self.survey.monitor.next_deadline()))
        if self._timer is None or due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._loop.call_at(max(due, self._loop.time()), self._run)

    def _run(self):
        self._timer = None
        now = time.monotonic()
        again = now + FAILED_SECONDS
        try:
            if now - self._due > LATE_SECONDS:
                self.agent.detector.late()
            self.agent.run(now)
            self.survey.monitor.run(now)
            again = 0.0
        finally:
            self._arm(again)

    async def run(self):
        """Until SIGTERM or SIGINT."""
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, stopped.set)
        await self._server.listen_locally(self._passed.local)
        await self._server.listen("0.0.0.0", self.settings.port, self._passed.questions)
        self.agent.start(time.monotonic())
        self._arm()
        for work in (lambda: self.survey.run(self.living), self.reports.run, self.hook.run, self.relay.run):
            self._spawn(self._again_and_again(work))
        print(f"clusterd: {self.settings.name} of cluster '{self.settings.cluster}', {len(self.survey.rails)} rails",
              flush=True)
        await stopped.wait()
        self.agent.leave()
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        self.transport.close()


def main(settings):
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(Daemon(settings, loop).run())
    finally:
        loop.close()
    return 0
