"""Questions and orders: between agents over TCP, from this node's users over a local socket.

Both carry frames of a 4-byte length and JSON. Over TCP each side begins with a random challenge; a request and its
answer are signed with the key over both challenges, so that neither can be repeated. Without a key only questions are
answered, and only those of nodes that are in the table; orders need a key. What passes is signed, not secret.

The local socket is abstract, named LOCAL_NAME, so every network namespace has its own and a crash leaves nothing
behind. The kernel says which user asks.
"""
import asyncio
import hmac
import json
import os
import pwd
import socket
import struct

from .errors import AgentError

LOCAL_NAME = "\0clusterd-1"
REQUEST_BYTES_MAX = 256 << 10
ANSWER_BYTES_MAX = 8 << 20
SECONDS_MAX = 20
CONNECTIONS_MAX = 64
_CHALLENGE = 16
_SIGNATURE = 32
VERSION = b"cQ\x00\x01"


async def _read_frame(reader, bytes_max):
    length = struct.unpack("!I", await reader.readexactly(4))[0]
    if length > bytes_max:
        raise AgentError(f"a frame of {length} bytes, more than {bytes_max}")
    return await reader.readexactly(length)


def _frame(data):
    return struct.pack("!I", len(data)) + data


def _signature(key, role, ours, theirs, data):
    return hmac.digest(key, b"".join((role, ours, theirs, data)), "sha256") if key else b""


class Server:
    """`answer(caller, operation, arguments)` is awaited for each request; `caller` is a Caller. `metrics` serves HTTP."""

    def __init__(self, key, answer, metrics=None):
        self._key, self._answer, self._metrics = key, answer, metrics
        self._servers, self._open = [], 0

    async def listen(self, address, port):
        self._servers.append(await asyncio.start_server(self._remote, address, port))

    async def listen_locally(self):
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            opened.bind(LOCAL_NAME)
        except OSError as error:
            raise AgentError("another agent is running on this node") from error
        self._servers.append(await asyncio.start_unix_server(self._local, sock=opened))

    def ports(self):
        return [opened.getsockname()[1] for server in self._servers for opened in server.sockets]

    def close(self):
        for server in self._servers:
            server.close()

    async def _reply(self, caller, data):
        try:
            request = json.loads(data)
            result = await self._answer(caller, str(request["operation"]), request.get("arguments", {}))
            return json.dumps({"result": result}).encode()
        except AgentError as error:
            return json.dumps({"error": str(error)}).encode()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return json.dumps({"error": f"the request makes no sense: {error}"}).encode()

    async def _guarded(self, serve, reader, writer):
        if self._open >= CONNECTIONS_MAX:
            writer.close()
            return
        self._open += 1
        try:
            await serve(reader, writer)
        except (OSError, EOFError, AgentError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            pass  # the caller is gone, or is none of ours
        finally:
            self._open -= 1
            writer.close()

    async def _remote(self, reader, writer):
        await self._guarded(self._serve_remote, reader, writer)

    async def _serve_remote(self, reader, writer):
        first = await asyncio.wait_for(reader.readexactly(len(VERSION)), SECONDS_MAX)
        address = writer.get_extra_info("peername")[0]
        if first == b"GET " and self._metrics:
            await asyncio.wait_for(self._metrics.serve(address, first, reader, writer), SECONDS_MAX)
            return
        mine = os.urandom(_CHALLENGE)
        writer.write(VERSION + mine)
        if first != VERSION:
            raise AgentError("another version")
        theirs = await asyncio.wait_for(reader.readexactly(_CHALLENGE), SECONDS_MAX)
        data = await asyncio.wait_for(_read_frame(reader, REQUEST_BYTES_MAX), SECONDS_MAX)
        if self._key:
            data, said = data[:-_SIGNATURE], data[-_SIGNATURE:]
            if not hmac.compare_digest(said, _signature(self._key, b"Q", mine, theirs, data)):
                raise AgentError("wrong signature")
        caller = Caller(address=address, trusted=bool(self._key), reader=reader, writer=writer)
        answer = await self._reply(caller, data)
        writer.write(_frame(answer + _signature(self._key, b"A", mine, theirs, answer)))
        await writer.drain()

    async def _local(self, reader, writer):
        await self._guarded(self._serve_local, reader, writer)

    async def _serve_local(self, reader, writer):
        credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        caller = Caller(uid=struct.unpack("3i", credentials)[1], reader=reader, writer=writer)
        answer = await self._reply(caller, await asyncio.wait_for(_read_frame(reader, REQUEST_BYTES_MAX), SECONDS_MAX))
        writer.write(_frame(answer))
        await writer.drain()


class Caller:
    """Where a request came from: another agent (`trusted` if it has the key), or a user of this node. `gone()` ends
    when the caller has closed the connection."""

    def __init__(self, address="", trusted=False, uid=None, reader=None, writer=None):
        self.address, self.trusted, self.uid, self._reader = address, trusted, uid, reader

    @property
    def user(self):
        try:
            return pwd.getpwuid(self.uid).pw_name if self.uid is not None else ""
        except KeyError:
            return str(self.uid)

    async def gone(self):
        await self._reader.read(1)


def _result(data):
    answer = json.loads(data)
    if "error" in answer:
        raise AgentError(answer["error"])
    return answer["result"]


async def ask(address, port, key, operation, arguments=None, seconds=SECONDS_MAX, source=None):
    """The result of an operation at another agent; AgentError with its reason."""
    request = json.dumps({"operation": operation, "arguments": arguments or {}}).encode()
    writer = None
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(
            address, port, limit=1 << 20, local_addr=(source, 0) if source else None), min(seconds, 3))
        mine = os.urandom(_CHALLENGE)
        writer.write(VERSION + mine)
        hello = await asyncio.wait_for(reader.readexactly(len(VERSION) + _CHALLENGE), seconds)
        if hello[:4] != VERSION:
            raise AgentError(f"the agent at {address} has another version")
        theirs = hello[4:]
        writer.write(_frame(request + _signature(key, b"Q", theirs, mine, request)))
        data = await asyncio.wait_for(_read_frame(reader, ANSWER_BYTES_MAX), seconds)
        if key:
            data, said = data[:-_SIGNATURE], data[-_SIGNATURE:]
            if not hmac.compare_digest(said, _signature(key, b"A", theirs, mine, data)):
                raise AgentError(f"the answer of {address} is not signed with this cluster's key")
        return _result(data)
    except (OSError, EOFError, asyncio.TimeoutError) as error:
        raise AgentError(f"no answer from {address}: {error or 'it takes too long, or the key is another one'}") from error
    finally:
        if writer:
            writer.close()


def ask_locally(operation, arguments=None, seconds=SECONDS_MAX):
    """The result of an operation at the agent of this node; AgentError with its reason."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.settimeout(seconds)
        try:
            opened.connect(LOCAL_NAME)
            opened.sendall(_frame(json.dumps({"operation": operation, "arguments": arguments or {}}).encode()))
            with opened.makefile("rb") as file:
                length = struct.unpack("!I", file.read(4))[0]
                return _result(file.read(length))
        except ConnectionRefusedError as error:
            raise AgentError("no agent is running on this node: systemctl start clusterd, or on virtual nodes: "
                             "vcluster up --agents, then vcluster exec node1 cluster-status") from error
        except (OSError, struct.error) as error:
            raise AgentError(f"the agent of this node does not answer: {error}") from error
