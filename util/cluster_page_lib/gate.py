"""What connections may cost: a limit for each address from the moment a connection is accepted, and deadlines for the
TLS handshake and the head of each request (the body has its own, web/forms.py). So neither silent nor slow clients keep
out others."""
import asyncio.constants
import socket
from collections import Counter

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX = 512
FROM_ONE_ADDRESS_MAX = 64  # a browser opens 6
HEAD_SECONDS = 10.0
asyncio.constants.SSL_HANDSHAKE_TIMEOUT = HEAD_SECONDS  # uvicorn cannot pass it on


class _Connection(socket.socket):
    def __init__(self, descriptor, leave):
        super().__init__(fileno=descriptor)
        self._leave = leave

    def close(self):
        super().close()
        leave, self._leave = self._leave, None
        if leave:
            leave()


class Listener(socket.socket):
    """A listening socket that closes what exceeds the limits at once."""

    _open = None

    def accept(self):
        if self._open is None:
            self._open = Counter()
        while True:
            connection, address = super().accept()
            if self._open.total() < CONNECTIONS_MAX and self._open[address[0]] < FROM_ONE_ADDRESS_MAX:
                break
            connection.close()
        self._open[address[0]] += 1
        return _Connection(connection.detach(), lambda: self._left(address[0])), address

    def _left(self, address):
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


class Protocol(H11Protocol):
    """HTTP with a deadline for each head. uvicorn itself ends connections that are idle between two requests."""

    _deadline = None

    def connection_made(self, transport):
        super().connection_made(transport)
        self._watch()

    def data_received(self, data):
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc):
        self._forget()
        super().connection_lost(exc)

    def _watch(self):
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget(self):
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
