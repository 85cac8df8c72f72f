"""The process: it connects the parts, sets up TLS, and handles the end."""
import asyncio
import contextlib
import socket

import uvicorn

from clusterd_lib.errors import AgentError
from clusterd_lib.roles import Roles

from . import certificate, gate
from .accounts import Accounts
from .cluster import Cluster
from .jobs import queues
from .sessions import Sessions
from .web import application
from .web.access import RoleCache
from .web.context import Context


MESSAGE_MAX = 64 << 10  # what is typed into a terminal at once


def context_of(settings, cluster=None, accounts=None, role_of=None, jobs=None):
    """Uses the real parts unless the caller gives others."""
    role_of = role_of or Roles(settings.look, settings.submit, settings.operate).of
    cluster = cluster or Cluster()
    return Context(settings, cluster, accounts or Accounts(), Sessions(), RoleCache(role_of), jobs or queues.choose(settings, cluster))


def listener(settings):
    if settings.listen_fd is not None:
        return gate.Listener(fileno=settings.listen_fd)
    opened = gate.Listener(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((settings.address, settings.port))
    except OSError as error:
        raise AgentError(f"{settings.address} port {settings.port}: {error.strerror}") from error
    opened.listen(128)
    return opened


def configured(settings, context):
    """The server, ready to serve."""
    certificate_file, key_file = certificate.ensure(settings)
    return uvicorn.Server(uvicorn.Config(
        application.make(context), ssl_certfile=certificate_file, ssl_keyfile=key_file, log_level="warning",
        server_header=False, proxy_headers=False, http=gate.Protocol, timeout_keep_alive=10, ws="websockets", ws_max_size=MESSAGE_MAX,
        lifespan="on", access_log=False))


def main(settings):
    context = context_of(settings)
    opened = listener(settings)
    server = configured(settings, context)
    mark = certificate.fingerprint(certificate.ensure(settings)[0])
    print(f"cluster-page: SHA-256 of its certificate {mark}", flush=True)
    print(f"cluster-page: https://{socket.gethostname()}:{opened.getsockname()[1]}/", flush=True)  # the last line: the page listens
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve(sockets=[opened]))
    return 0
