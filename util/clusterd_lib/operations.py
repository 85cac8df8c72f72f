"""The operations of an agent, and who may call which.

Other agents: nodes in the table may read `card` and `report`; everything else needs the key. Users of this node: every
account may look; actions need the role.
"""
import asyncio
import time

from cluster_why_lib import report

from . import audit, checked, roles
from .errors import AgentError
from .measure import rate
from .protocol import wire

ORDERS = {"drain": wire.DRAIN, "isolate": wire.ISOLATE, "resume": wire.NO_ORDER}
REASON_MAX = 60
RANKS_AT_ONCE = 16


class Operations:
    def __init__(self, daemon):
        self._daemon = daemon
        self._by_agents = {"card": self._card, "report": self._report, "series": self._series, "why": self._why, "ranks": self._ranks,
                           "rate-open": self._rate_open, "rate-result": self._rate_result}
        self._receivers = rate.Receivers()
        self._by_users = {"status": self._status, "addresses": self._addresses, "series": self._series, "why": self._why, "ranks": self._user_ranks,
                          "order": self._user_order, "forget": self._user_forget, "rate": self._user_rate}

    def add(self, name, answer, by_users=False):
        """An operation of another part; `answer(caller, arguments)` is awaited."""
        (self._by_users if by_users else self._by_agents)[name] = answer

    async def answer(self, caller, operation, arguments):
        if caller.uid is not None:
            if self._daemon.roles.of(caller.user) < roles.LOOK:
                raise AgentError(f"{caller.user} may not see the cluster: --look of clusterd names the users who may")
            table = self._by_users
        else:
            table = self._by_agents
            if not caller.trusted and (operation not in ("card", "report", "series") or not self.is_member(caller.address)):
                raise AgentError("this needs a key of the cluster: start clusterd with --key-file")
        if operation not in table:
            raise AgentError(f"'{operation}' is unknown here")
        return await table[operation](caller, arguments)

    def is_member(self, address):
        cards = self._daemon.survey.cards.values()
        return any(address == known for _, known in self._daemon.living()) or any(
            address == rail["address"] for card in cards for rail in card["rails"])

    async def _card(self, _caller, _arguments):
        return self._daemon.survey.card()

    async def _addresses(self, _caller, _arguments):
        """The addresses of each node, in the order of its rails: what this agent knows without asking others."""
        return [{"name": name, "addresses": self._daemon.survey.addresses_of(name)} for name in self._daemon.agent.membership.members]

    async def refresh_endpoints(self):
        await self._daemon.endpoints.refresh()

    async def _report(self, _caller, _arguments):
        await self.refresh_endpoints()
        return self._daemon.view.own_report()

    async def _series(self, _caller, arguments):
        name = arguments.get("node", self._daemon.settings.name)
        if name != self._daemon.settings.name:
            return await self._daemon.ask_node(name, "series")
        return self._daemon.survey.load.series()

    async def _why(self, _caller, arguments):
        name = arguments.get("node", self._daemon.settings.name)
        if name != self._daemon.settings.name:
            return await self._daemon.ask_node(name, "why")
        return await self._daemon.endpoints.why()

    async def _ranks(self, _caller, arguments):
        """The processes of this node (cluster_why_lib/report.py); `user`: only those of this number."""
        user = arguments.get("user")
        return [report.write(process) for process in await self._daemon.endpoints.ranks() if user is None or process.uid == user]

    async def _user_ranks(self, caller, _arguments):
        """The processes of all nodes: root sees those of all users."""
        daemon, gate = self._daemon, asyncio.Semaphore(RANKS_AT_ONCE)
        request = {} if caller.uid == 0 else {"user": caller.uid}

        async def of_node(name):
            node = {"name": name, "addresses": daemon.survey.addresses_of(name)}
            state, reason = daemon.agent.membership.members[name].visible(time.monotonic())
            if state == "down":
                since = daemon.agent.membership.members[name].since
                return {**node, "down": True, "trouble": reason, "since_s": round(time.monotonic() - since, 1)}
            try:
                async with gate:
                    asked = self._ranks(caller, request) if name == daemon.settings.name else daemon.ask_node(name, "ranks", request)
                    return {**node, "processes": await asked}
            except AgentError as error:
                return {**node, "trouble": str(error)}

        names = list(daemon.agent.membership.members)
        return {"seen_from": daemon.settings.name, "nodes": list(await asyncio.gather(*map(of_node, names)))}

    async def _status(self, _caller, arguments):
        await self.refresh_endpoints()
        if not arguments.get("wait", True):  # a caller that asks every second gets what is there
            self._daemon.reports.look()
        else:
            try:
                await asyncio.wait_for(self._daemon.reports.complete(), 5)
            except asyncio.TimeoutError:
                pass  # what has arrived so far
            await self.refresh_endpoints()  # two looks give rates
        return self._daemon.view.everything(checked.events(arguments.get("history", 100)))

    def order(self, user, node, order, reason):
        """For users: the caller of this function has checked the role."""
        daemon = self._daemon
        if order not in ORDERS:
            raise AgentError(f"'{order}' is no action: drain, isolate or resume")
        if not (user + reason).isprintable():  # every agent and the page get this text: it has to be UTF-8 in one line
            raise AgentError("the reason has a character that cannot be printed")
        if node not in daemon.agent.membership.members:
            raise AgentError(f"{node} is unknown")
        words = {"drain": "drained", "isolate": "isolated", "resume": "resumed"}[order]
        text = f"{words} by {user}{': ' + reason if reason else ''}"
        daemon.agent.order(node, ORDERS[order], "" if order == "resume" else text[:REASON_MAX], time.monotonic())
        daemon.history.add("order", node, text)
        audit.note("action", user=user, node=node, action=order, reason=reason)
        daemon.rearm()
        return text

    def _need_operate(self, caller):
        if self._daemon.roles.of(caller.user) < roles.OPERATE:
            raise AgentError(f"{caller.user} may not operate: --operate of clusterd names the users who may")

    async def _user_order(self, caller, arguments):
        self._need_operate(caller)
        by = str(arguments.get("by", caller.user)) if caller.uid == 0 else caller.user  # the page names its user
        done = self.order(by, str(arguments["node"]), str(arguments["order"]), str(arguments.get("reason", "")))
        return done if self._daemon.key else f"{done} (known to this node only: agents without a key take no orders from others)"

    async def _user_forget(self, caller, arguments):
        self._need_operate(caller)
        if not self._daemon.agent.membership.forget(str(arguments["node"])):
            raise AgentError("only a node that is down can be forgotten")
        audit.note("action", user=caller.user, node=str(arguments["node"]), action="forget", reason="")
        return "forgotten"

    async def _rate_open(self, caller, arguments):
        rails = self._daemon.survey.rails
        return self._receivers.open(rails[int(arguments["rail"])]["address"], str(arguments["source"]))

    async def _rate_result(self, _caller, arguments):
        return await self._receivers.result(int(arguments["port"]))

    async def rates(self, name):
        """The bits per second that reach a node over each rail, measured one rail after the other."""
        found = []
        for (peer, number), link in sorted(self._daemon.survey.monitor.links.items()):
            if peer != name:
                continue
            source = self._daemon.survey.rails[number]["address"]
            port = await self._daemon.ask_node(name, "rate-open", {"rail": number, "source": source})
            try:
                await rate.send((link.address[0], port), source)
            except OSError:
                pass  # the answer says how much arrived
            bits = await self._daemon.ask_node(name, "rate-result", {"port": port})
            link.rate = float(bits)
            found.append({"rail": number, "bits_per_second": bits})
        return found

    async def _user_rate(self, caller, arguments):
        self._need_operate(caller)
        return await self.rates(str(arguments["node"]))
