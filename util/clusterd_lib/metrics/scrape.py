"""Answers one HTTP request for /metrics from this node, from nodes of the cluster, or from the networks of --metrics.

The agent's port is for agents, which begin with their version; a request that begins with GET comes here. The agent
answers once and closes the connection.
"""
import http.client
import io
import ipaddress

import psutil
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from ..protocol import wire
from ..view import ORDERS
from .families import families

HEAD_BYTES_MAX = 16 << 10


class Metrics:
    """`refresh()` is awaited before each answer; `is_member(address)` says whether a node has this address."""

    def __init__(self, daemon, refresh, is_member):
        self._daemon, self._refresh, self._is_member = daemon, refresh, is_member
        self._networks = [ipaddress.ip_network(text) for text in daemon.settings.metrics]
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(namespace="clusterd", registry=self._registry)

    def describe(self):  # so that the registry does not collect at registration
        return []

    def collect(self):
        return families(self._picture())

    def _picture(self):
        daemon = self._daemon
        survey, transport = daemon.survey, daemon.transport
        return {
            "node": daemon.settings.name, "cluster": daemon.settings.cluster, "protocol": wire.VERSION,
            "sent_bytes": transport.sent_bytes, "sent_messages": transport.sent_messages, "refused": transport.refused,
            "events": daemon.history.counted, "findings": survey.findings(), "load": survey.load.latest,
            "nodes": {name: (member.state, ORDERS[member.order]) for name, member in daemon.agent.membership.members.items()},
            "rails": survey.rails, "interfaces": psutil.net_io_counters(pernic=True), "links": survey.links(),
            "accounting": daemon.endpoints.accounting}

    def is_known(self, address):
        """True for a node of the cluster and for a host that --metrics names."""
        found = ipaddress.ip_address(address)
        return self._is_member(address) or any(found in network for network in self._networks)

    def _may(self, address):
        return ipaddress.ip_address(address).is_loopback or self.is_known(address)

    async def _answer(self, address, head):
        line, _, rest = head.partition(b"\r\n")
        words = line.split()
        headers = http.client.parse_headers(io.BytesIO(rest))
        if len(words) != 3:
            return 400, "text/plain", b"no HTTP request\n"
        if not self._may(address):
            return 403, "text/plain", f"{address} may not read metrics: --metrics of clusterd says which networks may\n".encode()
        if words[1].partition(b"?")[0] != b"/metrics":
            return 404, "text/plain", b"only /metrics is here\n"
        await self._refresh()
        encode, kind = choose_encoder(headers.get("Accept"))
        return 200, kind, encode(self._registry)

    async def serve(self, address, head, writer):
        """Answers a request, of which the agent has read the head."""
        status, kind, body = await self._answer(address, head[:HEAD_BYTES_MAX])
        writer.write((f"HTTP/1.1 {status} {http.client.responses[status]}\r\nContent-Type: {kind}\r\n"
                      f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body)
        await writer.drain()
