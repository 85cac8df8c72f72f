"""A terminal in the browser: a page with xterm.js, and the WebSocket between it and the shell.

The first message carries the token of the session, as a form does. The terminal ends with its page, its session, or the
role of its user.
"""
import asyncio
import contextlib
import json
import secrets

from starlette.websockets import WebSocketDisconnect

from clusterd_lib import roles
from clusterd_lib.errors import AgentError

from . import access

HELLO_SECONDS, LOOK_SECONDS = 10.0, 5.0
SHOWN_MAX = 20
REFUSED = 4403  # the code by which the page knows that it need not try again


async def show(request, visit):
    context = request.app.state.context
    machine = request.query_params.get("machine", "")
    nodes = await context.machines.nodes_of(visit.user, machine) if machine else []
    past = [entry for entry in reversed(context.terminals.past.entries) if entry["user"] == visit.user or visit.may_operate]
    request.scope["style_nonce"] = nonce = secrets.token_urlsafe(16)
    return context.page("terminal.html", visit, machine=machine, nodes=nodes, nonce=nonce, past=past[:SHOWN_MAX])


def _sizes(message):
    return [message[name] if type(message.get(name)) is int else 0 for name in ("rows", "columns")]  # True is no number


async def _hello(socket, session):
    """The first message; None if it is not right."""
    try:
        message = json.loads(await asyncio.wait_for(socket.receive_text(), HELLO_SECONDS))
        return message if session.accepts(str(message.get("token", ""))) else None
    except (ValueError, KeyError, AttributeError, RecursionError, asyncio.TimeoutError):
        return None


async def _from_shell(socket, terminal):
    while data := await terminal.read():
        await socket.send_bytes(data)


async def _from_browser(socket, terminal, is_alive):
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if message.get("bytes"):
            is_alive(True)
            await terminal.type(message["bytes"])
        elif message.get("text"):
            with contextlib.suppress(ValueError, AttributeError, RecursionError):
                await terminal.resize(*_sizes(json.loads(message["text"])))


async def _while_allowed(is_alive):
    while is_alive(False):
        await asyncio.sleep(LOOK_SECONDS)


async def connect(socket, session, is_alive):
    """`is_alive(active)`: whether the user still has the session and the role."""
    context = socket.app.state.context
    await socket.accept()
    hello = await _hello(socket, session)
    if hello is None:
        await socket.close(REFUSED)
        return
    try:
        machine = str(hello.get("machine", ""))
        nodes = await context.machines.nodes_of(session.user, machine) if machine else []
        terminal = await context.terminals.open(session.user, socket.client.host if socket.client else "", machine, nodes)
    except AgentError as error:
        await socket.send_text(str(error))
        await socket.close(REFUSED)
        return
    try:
        await terminal.resize(*_sizes(hello))
        tasks = [asyncio.ensure_future(work) for work in (
            _from_shell(socket, terminal), _from_browser(socket, terminal, is_alive), _while_allowed(is_alive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # the browser has closed it
            await socket.close()
    finally:
        await context.terminals.close(terminal)


ROUTES = [access.page("/terminal", roles.SUBMIT, show), access.socket("/terminal/socket", roles.SUBMIT, connect)]
