"""How many bits per second a link carries: one TCP connection sends over it for a second, as fast as both ends can.

The target opens a port for one connection from the node that asks, counts the bytes, and answers when the connection is
closed.
"""
import asyncio
import socket
import time

SECONDS = 1.0
_PIECE = 1 << 18


def _send(address, source, deadline):
    with socket.create_connection(address, 3, (source, 0)) as opened:
        opened.settimeout(3)
        data = memoryview(bytes(_PIECE))
        while time.monotonic() < deadline:
            opened.sendall(data)


def _count(opened, peer):
    """Bytes and seconds of one connection from the peer."""
    with opened:
        opened.settimeout(3 + SECONDS)
        while True:
            connection, address = opened.accept()
            if address[0] == peer:
                break
            connection.close()
        with connection:
            connection.settimeout(3)
            buffer, count, started = bytearray(_PIECE), 0, time.monotonic()
            while True:
                got = connection.recv_into(buffer)
                if not got:
                    return count, time.monotonic() - started
                count += got


class Receivers:
    """The target's side: `open` returns a port, `result` waits for the count."""

    def __init__(self):
        self._counting = {}

    def open(self, address, peer):
        opened = socket.create_server((address, 0))
        port = opened.getsockname()[1]
        self._counting[port] = asyncio.get_running_loop().run_in_executor(None, _count, opened, peer)
        return port

    async def result(self, port):
        try:
            count, seconds = await self._counting.pop(port)
        except OSError:
            return 0.0
        return count * 8 / seconds if seconds else 0.0


async def send(address, source):
    """Fills the link for a second."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, _send, address, source, time.monotonic() + SECONDS)
