"""The role that each page needs: this module wraps every handler with its role.

A handler is awaited with (request, visit); `visit` has the session, the role and, for a POST, the checked form.
"""
import dataclasses
import time
from typing import Optional

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute

from clusterd_lib import roles
from clusterd_lib.errors import AgentError

from ..sessions import Session
from . import forms

COOKIE = "__Host-cluster"
ROLE_SECONDS = 5.0


@dataclasses.dataclass
class Visit:
    session: Optional[Session]
    role: int = roles.NONE
    form: dict = dataclasses.field(default_factory=dict)

    @property
    def user(self):
        return self.session.user if self.session else ""

    @property
    def may_submit(self):
        return self.role >= roles.SUBMIT

    @property
    def may_operate(self):
        return self.role >= roles.OPERATE


class RoleCache:
    """Looks up roles again after a few seconds, so that a user who leaves a group loses the role without a logout."""

    def __init__(self, of, clock=time.monotonic):
        self._of, self._clock, self._known = of, clock, {}

    def of(self, user):
        now = self._clock()
        role, at = self._known.get(user, (0, float("-inf")))
        if now - at > ROLE_SECONDS:
            role = self._of(user)
            self._known[user] = (role, now)
        return role


def to_login(request):
    if request.headers.get("hx-request"):
        return Response(status_code=204, headers={"hx-redirect": "/login"})
    return RedirectResponse("/login", 303)


def socket(path, needed, handler):
    """A WebSocket; the guard has checked that our own page opens it. `handler` is awaited with (socket, session, is_alive)."""

    async def serve(opened):
        context, secret = opened.app.state.context, opened.cookies.get(COOKIE)
        session = context.sessions.find(secret, True)

        def is_alive(active):
            return context.sessions.find(secret, active) is session and context.roles.of(session.user) >= needed

        if session is None or not is_alive(False):
            await opened.close(1008)
            return
        await handler(opened, session, is_alive)

    serve.needed_role = needed
    return WebSocketRoute(path, serve)


def page(path, needed, handler, method="GET", token_check=None):
    """A route. `needed` None: open before the login. `token_check(request, session)`: for a POST whose body is no form."""

    async def serve(request):
        context = request.app.state.context
        refreshes_itself = method == "GET" and request.headers.get("hx-request") and "hx-boosted" not in request.headers
        session = context.sessions.find(request.cookies.get(COOKIE), not refreshes_itself)
        if session is None and needed is not None:
            return to_login(request)
        visit = Visit(session, context.roles.of(session.user) if session else roles.NONE)
        if needed is not None and visit.role < needed:
            return context.error(request, visit, 403, f"Your account may not do this: it needs the role "
                                                      f"'{roles.NAMES[needed]}' and has '{roles.NAMES[visit.role]}'.")
        try:
            if method == "POST" and token_check is not None:
                if not token_check(request, session):
                    raise forms.BadForm(forms.WRONG_TOKEN, 403)
            elif method == "POST":
                visit.form = await forms.read(request, session)
            return await handler(request, visit)
        except forms.BadForm as error:
            return context.error(request, visit, error.status, str(error))
        except AgentError as error:
            return context.error(request, visit, 503, str(error))

    serve.needed_role = needed
    return Route(path, serve, methods=[method])
