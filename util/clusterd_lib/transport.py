"""UDP sockets of an agent: one per rail, bound to its address, and one for multicast.

Arriving datagrams pass the gate (protocol/wire.py) here and nowhere else; refused ones are counted by reason. A message
to a node leaves by a rail that is up, or by all usable rails while that one is in doubt (measure/links.py).
"""
import errno
import ipaddress
import socket
import struct
from collections import Counter

from .errors import AgentError
from .protocol import wire

_IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE = 10, 3
_IP_PKTINFO = 8
_BURST = 32  # datagrams of one socket in a turn


class _Rail:
    def __init__(self, index, rail, port, shared):
        self.index, self.rail = index, rail
        self.network = ipaddress.ip_network(rail["network"])
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(rail["address"]))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shared)
        self.socket.bind((rail["address"], port))


class Transport:
    """`received(message, address, rail, by_hello)` is called for each message; `routes(name)` returns the rails that
    reach a node and its addresses there, if known (survey.py). `shared`: another socket of root has the port on every
    address, for this process (passed_sockets.py)."""

    def __init__(self, loop, settings, key, received, shared=False):
        self._loop, self._settings, self._key, self._shared = loop, settings, key, shared
        self._tag = wire.tag(settings.cluster)
        self._received = received
        self._rails, self._group, self._interfaces = [], None, {}
        self.names_of, self.routes = {}, lambda name: []
        self.refused, self.sent_bytes, self.sent_messages = Counter(), 0, 0

    def open(self, rails):
        """Binds to these rails, in place of those before; a rail that has just gone is left out."""
        self.close()
        for index, rail in enumerate(rails):
            try:
                self._rails.append(_Rail(index, rail, self._settings.port, self._shared))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise AgentError(f"{rail['address']} port {self._settings.port} is in use: another agent is "
                                     'running on this node, or another process uses the port ("ss -ulpn" shows it); choose another '
                                     '--port on all nodes, or keep the port for the agent: "systemctl enable --now clusterd.socket"') from error
        for rail in self._rails:
            self._loop.add_reader(rail.socket, self._readable, rail.socket, rail.index)
        if self._settings.group and self._rails:
            self._open_group()

    def _open_group(self):
        self._group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, self._shared)
        self._group.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        self._group.bind((self._settings.group, self._settings.port))
        for rail in self._rails:
            number = socket.if_nametoindex(rail.rail["device"])
            self._interfaces[number] = rail.index
            request = socket.inet_aton(self._settings.group) + socket.inet_aton(rail.rail["address"]) + struct.pack("=i", number)
            try:
                self._group.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
            except OSError:
                continue  # an interface without multicast: the list of names remains
        self._loop.add_reader(self._group, self._readable, self._group, None)

    def close(self):
        for opened in [rail.socket for rail in self._rails] + ([self._group] if self._group else []):
            self._loop.remove_reader(opened)
            opened.close()
        self._rails, self._group, self._interfaces = [], None, {}

    def _readable(self, opened, rail):
        for _ in range(_BURST):
            try:
                data, extra, _, address = opened.recvmsg(65536, 128)
            except OSError:
                return  # nothing left, or a path error of one datagram
            try:
                message = wire.decode(data, self._tag, self._key)
            except wire.Rejected as reason:
                self.refused[str(reason)] += 1
                continue
            arrived_on = rail
            for level, kind, value in extra:
                if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                    arrived_on = self._interfaces.get(struct.unpack_from("=i", value)[0])
            self._received(message, address, arrived_on, rail is None)

    def _put(self, rail, address, data):
        self.sent_bytes += len(data) + wire.OVERHEAD_BYTES
        self.sent_messages += 1
        try:
            rail.socket.sendto(data, address)
        except OSError:
            pass  # lost, as on the wire: the unanswered probe will show it

    def _rail_towards(self, address):
        """The rail whose network has the address, or the first."""
        target = ipaddress.ip_address(address)
        return next((rail for rail in self._rails if target in rail.network), self._rails[0] if self._rails else None)

    def encode(self, message):
        return wire.encode(message, self._tag, self._key)

    def send(self, address, message):
        data = self.encode(message)
        where = (socket.inet_ntop(socket.AF_INET, address[0]), address[1])
        routes = self.routes(self.names_of.get(where, ""))
        for route in routes:
            if route.rail < len(self._rails):
                self._put(self._rails[route.rail], route.address, data)
        rail = None if routes else self._rail_towards(where[0])
        if rail:
            self._put(rail, where, data)

    def send_echo(self, rail, address, message, size):
        """An echo of `size` bytes with its IP header; 0: as short as possible."""
        if rail >= len(self._rails):
            return
        data = self.encode(message)
        if size > len(data) + wire.OVERHEAD_BYTES:
            data = self.encode(message._replace(padding=size - len(data) - wire.OVERHEAD_BYTES))
        self._put(self._rails[rail], address, data)

    def answer_echo(self, rail, address, message):
        if rail is not None and rail < len(self._rails):
            self._put(self._rails[rail], address, self.encode(message))

    def hello(self, message):
        for rail in self._rails:
            data = self.encode(message._replace(number=rail.index))
            if self._group:
                self._put(rail, (self._settings.group, self._settings.port), data)
        for host in self._settings.peers:
            rail = self._rail_towards(host)
            if rail:
                self._put(rail, (host, self._settings.port), self.encode(message))
