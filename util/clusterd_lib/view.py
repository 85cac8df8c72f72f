"""The cluster as one value: nodes, rails as a matrix, endpoints, history. It combines the table, this node's
measurements and the reports of others."""
import time

from .protocol import wire

MATRIX_NODES_MAX = 64  # a larger matrix is unreadable; the table shows which nodes have bad links
ORDERS = {wire.NO_ORDER: "", wire.DRAIN: "drained", wire.ISOLATE: "isolated"}


class View:
    def __init__(self, agent, survey, endpoints, reports, history, relay):
        self._agent, self._survey, self._endpoints = agent, survey, endpoints
        self._reports, self._history, self._relay = reports, history, relay

    def own_report(self):
        """What this node reports to others."""
        links = self._survey.links()
        if len(self._agent.membership.members) > MATRIX_NODES_MAX:
            links = [link for link in links if link["state"] == "down" or link["loss"] > 0.01]
        relay = self._relay.report()
        return {"card": self._survey.card(), "load": self._survey.load.latest, "links": links,
                "findings": self._survey.findings(), "endpoints": self._endpoints.latest, **({"relay": relay} if relay else {})}

    def report(self, name):
        """The newest report of a node, its own for this one; None without one."""
        if name == self._agent.name:
            return self.own_report()
        return self._reports.latest(name)[0]

    def node(self, name):
        member = self._agent.membership.members[name]
        report = self.report(name)
        state, reason = member.visible(time.monotonic())
        entry = {"name": name, "state": state, "reason": reason, "order": ORDERS[member.order],
                 "order_reason": member.order_reason, "since": round(time.time() - (time.monotonic() - member.since), 1),
                 "rails": [], "rates": {}, "cpu": None, "memory": None, "load": None, "endpoints": None, "links_down": None}
        if report and state != "down":
            load = report["load"]
            entry.update(rails=report["card"]["rails"], rates=load["rates"], cpu=load["cpu"], memory=load["memory"], load=load["load1"],
                         endpoints=sum(len(process.get("endpoints", [])) for process in report["endpoints"].get("processes", [])),
                         links_down=sum(link["state"] == "down" for link in report["links"]))
        return entry

    def nodes(self):
        return [self.node(name) for name in sorted(self._agent.membership.members, key=natural)]

    def links(self):
        """Every reported link, from both ends: `from`, `peer`, rail..."""
        found = []
        for name in sorted(self._agent.membership.members, key=natural):
            report = self.report(name)
            if report and self._agent.membership.members[name].status < wire.DOWN:
                found += [{"from": name, **link} for link in report["links"]]
        return found

    def findings(self):
        """Of all nodes, each once."""
        found = {}
        for name in self._agent.membership.members:
            for entry in (self.report(name) or {}).get("findings", []):
                found.setdefault((entry["node"], entry["text"]), entry)
        return [found[name] for name in sorted(found)]

    def endpoints(self):
        """Running endpoints of all nodes, a row each: node, process, job, and what cluster-info says, with rates."""
        rows = []
        for name in sorted(self._agent.membership.members, key=natural):
            for process in ((self.report(name) or {}).get("endpoints") or {}).get("processes", []):
                for endpoint in process.get("endpoints", []):
                    rows.append({**endpoint, "node": name, "pid": process.get("pid"), "command": process.get("command", ""),
                                 "job": process.get("job", "")})
        return rows

    def relays(self):
        """The relays of the agents, a row each, with what they have done since they began."""
        return [{"node": name, **report["relay"]} for name in sorted(self._agent.membership.members, key=natural)
                if (report := self.report(name) or {}).get("relay")]

    def everything(self, history=100):
        return {"cluster": {"seen_from": self._agent.name, "nodes": len(self._agent.membership.members)},
                "nodes": self.nodes(), "links": self.links(), "findings": self.findings(), "endpoints": self.endpoints(),
                "relays": self.relays(), "history": self._history.latest(history)}


def natural(name):
    """Orders node10 after node9."""
    parts, digits = [], ""
    for character in name + "\0":
        if character.isdigit():
            digits += character
        else:
            if digits:
                parts.append((0, int(digits), ""))
                digits = ""
            parts.append((1, 0, character))
    return parts
