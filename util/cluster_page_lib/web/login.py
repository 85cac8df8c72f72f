"""Login and logout."""
from starlette.responses import RedirectResponse

from clusterd_lib import audit, roles

from ..accounts import TEXT_MAX, TooManyWrong
from . import access


async def show(request, visit):
    if visit.session:
        return RedirectResponse("/", 303)
    return request.app.state.context.page("login.html", visit, trouble="", user="")


async def enter(request, visit):
    context = request.app.state.context
    user = visit.form.get("user", "")
    facts = {"user": user[:TEXT_MAX], "address": request.client.host if request.client else ""}
    status, trouble = 401, "Wrong user name or password."
    try:
        if await context.accounts.check(user, visit.form.get("password", ""), facts["address"]):
            if context.roles.of(user) > roles.NONE:
                answer = RedirectResponse("/", 303)
                answer.set_cookie(access.COOKIE, context.sessions.begin(user), secure=True, httponly=True, samesite="strict")
                audit.note("login", **facts)
                return answer
            status, trouble = 403, "This account may not look at this cluster."
        audit.note("login refused", **facts)
    except TooManyWrong as error:
        status, trouble = 429, f"Too many wrong passwords: try again in {error.seconds:.0f} seconds."
    return context.page("login.html", access.Visit(None), status, trouble=trouble, user=user[:64])


async def leave(request, visit):
    audit.note("logout", user=visit.user)
    request.app.state.context.sessions.end(request.cookies.get(access.COOKIE))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(access.COOKIE, secure=True, httponly=True, samesite="strict")
    return answer


ROUTES = [access.page("/login", None, show), access.page("/login", None, enter, "POST"),
          access.page("/logout", roles.LOOK, leave, "POST")]
