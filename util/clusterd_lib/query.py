"""Queries and actions: agents send them to each other over TCP, and users of this node over a local socket.

Both carry frames of a 4-byte length and JSON. Over TCP each side begins with a random challenge. The key signs each
request and each answer together with both challenges and the name of the node that is asked, so nobody can replay them
or redirect them to another node. Without a key an agent answers queries only, and only those of nodes in its table;
actions need a key. The traffic is signed, not secret.

The local socket is abstract, named LOCAL_NAME, so every network namespace has its own and a crash leaves nothing
behind. The kernel tells which user asks. While no agent has the name, any user can take it, so the caller checks who
listens: root or the caller's own user.

The agent limits connections. Nodes, strangers, users and root have separate limits, so none of these keeps out another;
each node and each user has a limit too, so none keeps out the rest. A stranger is a host that is neither a node of the
cluster nor one that may read metrics: a node that is not in the table yet, for example. The agent closes a connection
that sends no request soon.
"""
import asyncio
import hmac
import json
import os
import pwd
import socket
import struct
from collections import Counter

from .errors import AgentError

LOCAL_NAME = "\0clusterd-1"
REQUEST_BYTES_MAX = 256 << 10
ANSWER_BYTES_MAX = 8 << 20
ERROR_MAX = 2000
SECONDS_MAX = 20
REQUEST_SECONDS = 3  # until the whole request has come
CONNECTIONS_MAX = 256  # from other nodes, and as many from users
STRANGERS_MAX = 64
FROM_ONE_NODE_MAX, FROM_ONE_USER_MAX = 16, 64
_CHALLENGE = 16
_SIGNATURE = 32
VERSION = b"cQ\x00\x02"


async def _read_frame(reader, bytes_max):
    length = struct.unpack("!I", await reader.readexactly(4))[0]
    if length > bytes_max:
        raise AgentError(f"the frame has {length} bytes, more than the limit of {bytes_max}")
    return await reader.readexactly(length)


def _frame(data):
    return struct.pack("!I", len(data)) + data


def _signature(key, role, name, ours, theirs, data):
    """`name` is that of the node that is asked."""
    to = name.encode()
    return hmac.digest(key, b"".join((role, bytes([len(to)]), to, ours, theirs, data)), "sha256") if key else b""


def _user_of(connected):
    """The user at the other end of a local socket."""
    return struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]


class _Gate:
    """How many connections are open, in all and from each source."""

    def __init__(self, most, from_one_max):
        self._most, self._from_one_max, self._open = most, from_one_max, Counter()

    def enter(self, source):
        if self._open.total() >= self._most or self._open[source] >= self._from_one_max:
            return False
        self._open[source] += 1
        return True

    def leave(self, source):
        self._open[source] -= 1
        if not self._open[source]:
            del self._open[source]


class Server:
    """Of the node `name`. `answer(caller, operation, arguments)` is awaited for each request; `caller` is a Caller. `metrics`
    serves HTTP. `is_known(address)` says whether the host there is no stranger."""

    def __init__(self, name, key, answer, metrics=None, is_known=lambda address: False):
        self._name, self._key, self._answer, self._metrics, self._is_known = name, key, answer, metrics, is_known
        self._servers = []
        self._nodes = _Gate(CONNECTIONS_MAX, FROM_ONE_NODE_MAX)
        self._strangers = _Gate(STRANGERS_MAX, FROM_ONE_NODE_MAX)
        self._users = _Gate(CONNECTIONS_MAX, FROM_ONE_USER_MAX)
        self._root = _Gate(FROM_ONE_USER_MAX, FROM_ONE_USER_MAX)

    async def listen(self, address, port, opened=None):
        """`opened`: a socket that listens there already."""
        where = {"sock": opened} if opened else {"host": address, "port": port}
        self._servers.append(await asyncio.start_server(self._remote, **where))

    async def listen_locally(self, opened=None):
        if opened is None:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            try:
                opened.bind(LOCAL_NAME)
            except OSError as error:
                raise AgentError("another agent is running on this node, or another process uses the name of its socket "
                                 "(\"ss -xlp 'src @clusterd-1'\" shows it). \"systemctl enable --now clusterd.socket\" "
                                 "keeps the name for the agent") from error
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
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            return json.dumps({"error": f"the request is malformed: {error}"}).encode()

    @staticmethod
    async def _guarded(gate, source, serve, reader, writer):
        if not gate.enter(source):
            writer.close()
            return
        try:
            await serve(source, reader, writer)
        except (OSError, EOFError, AgentError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            pass  # the caller is gone, or does not speak this protocol
        finally:
            gate.leave(source)
            writer.close()

    async def _remote(self, reader, writer):
        address = (writer.get_extra_info("peername") or ("",))[0]
        gate = self._nodes if self._is_known(address) else self._strangers
        await self._guarded(gate, address, self._serve_remote, reader, writer)

    async def _signed_request(self, mine, reader):
        theirs = await reader.readexactly(_CHALLENGE)
        data = await _read_frame(reader, REQUEST_BYTES_MAX)
        if self._key:
            data, said = data[:-_SIGNATURE], data[-_SIGNATURE:]
            if not hmac.compare_digest(said, _signature(self._key, b"Q", self._name, mine, theirs, data)):
                raise AgentError("wrong signature")
        return theirs, data

    async def _serve_remote(self, address, reader, writer):
        first = await asyncio.wait_for(reader.readexactly(len(VERSION)), REQUEST_SECONDS)
        if first == b"GET " and self._metrics:
            head = first + await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS)
            await asyncio.wait_for(self._metrics.serve(address, head, writer), SECONDS_MAX)
            return
        mine = os.urandom(_CHALLENGE)
        writer.write(VERSION + mine)
        if first != VERSION:
            raise AgentError("another version")
        theirs, data = await asyncio.wait_for(self._signed_request(mine, reader), REQUEST_SECONDS)
        caller = Caller(address=address, trusted=bool(self._key), reader=reader, writer=writer)
        answer = await self._reply(caller, data)
        writer.write(_frame(answer + _signature(self._key, b"A", self._name, mine, theirs, answer)))
        await writer.drain()

    async def _local(self, reader, writer):
        user = _user_of(writer.get_extra_info("socket"))
        await self._guarded(self._users if user else self._root, user, self._serve_local, reader, writer)

    async def _serve_local(self, user, reader, writer):
        caller = Caller(uid=user, reader=reader, writer=writer)
        answer = await self._reply(caller, await asyncio.wait_for(_read_frame(reader, REQUEST_BYTES_MAX), REQUEST_SECONDS))
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
    try:
        answer = json.loads(data)
        if "error" not in answer:
            return answer["result"]
        error = str(answer["error"])
    except (ValueError, KeyError, TypeError, RecursionError) as reason:
        raise AgentError("the answer is malformed") from reason
    raise AgentError("".join(character if character.isprintable() else "?" for character in error[:ERROR_MAX]))


async def ask(name, address, port, key, operation, arguments=None, seconds=SECONDS_MAX, source=None):
    """The result of an operation at the agent of another node, of that name; AgentError with its reason."""
    request = json.dumps({"operation": operation, "arguments": arguments or {}}).encode()
    writer = None
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(
            address, port, limit=1 << 20, local_addr=(source, 0) if source else None), min(seconds, 3))
        mine = os.urandom(_CHALLENGE)
        writer.write(VERSION + mine)
        hello = await asyncio.wait_for(reader.readexactly(len(VERSION) + _CHALLENGE), seconds)
        if hello[:4] != VERSION:
            raise AgentError(f"the agent at {address} has another version: install one version on all nodes")
        theirs = hello[4:]
        writer.write(_frame(request + _signature(key, b"Q", name, theirs, mine, request)))
        data = await asyncio.wait_for(_read_frame(reader, ANSWER_BYTES_MAX), seconds)
        if key:
            data, said = data[:-_SIGNATURE], data[-_SIGNATURE:]
            if not hmac.compare_digest(said, _signature(key, b"A", name, theirs, mine, data)):
                raise AgentError(f"the answer of {address} is not signed with this cluster's key, or not by {name}")
        return _result(data)
    except (OSError, EOFError, asyncio.TimeoutError) as error:
        raise AgentError(f"no answer from {address}: {error or 'it took too long, or the key differs'}") from error
    finally:
        if writer:
            writer.close()


def ask_locally(operation, arguments=None, seconds=SECONDS_MAX):
    """The result of an operation at the agent of this node; AgentError with its reason."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.settimeout(seconds)
        try:
            opened.connect(LOCAL_NAME)
            if _user_of(opened) not in (0, os.geteuid()):
                raise AgentError("a process of a user other than root poses as the agent of this node: "
                                 "\"ss -xlp 'src @clusterd-1'\" shows it")
            opened.sendall(_frame(json.dumps({"operation": operation, "arguments": arguments or {}}).encode()))
            with opened.makefile("rb") as file:
                length = struct.unpack("!I", file.read(4))[0]
                if length > ANSWER_BYTES_MAX:
                    raise AgentError(f"the answer has {length} bytes, more than the limit of {ANSWER_BYTES_MAX}")
                return _result(file.read(length))
        except ConnectionRefusedError as error:
            raise AgentError('no agent is running on this node: run "systemctl start clusterd", or on virtual nodes '
                             '"vcluster up --agents", then "vcluster exec node1 cluster-status"') from error
        except (OSError, struct.error) as error:
            raise AgentError(f"the agent of this node does not answer: {error}") from error
