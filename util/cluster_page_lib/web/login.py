"""Login and logout."""
from starlette.responses import RedirectResponse

from clusterd_lib import roles

from ..accounts import TooManyWrong
from . import access


async def show(request, visit):
    if visit.session:
        return RedirectResponse("/", 303)
    return request.app.state.context.page("login.html", visit, trouble="", user="")


async def enter(request, visit):
    context = request.app.state.context
    user = visit.form.get("user", "")
    status, trouble = 401, "Wrong user name or password."
    try:
        if await context.accounts.check(user, visit.form.get("password", ""), request.client.host if request.client else ""):
            if context.roles.of(user) > roles.NONE:
                answer = RedirectResponse("/", 303)
                answer.set_cookie(access.COOKIE, context.sessions.begin(user), secure=True, httponly=True, samesite="strict")
                return answer
            status, trouble = 403, "This account may not look at this cluster."
    except TooManyWrong as error:
        status, trouble = 429, f"Too many wrong passwords: try again in {error.seconds:.0f} seconds."
    return context.page("login.html", access.Visit(None), status, trouble=trouble, user=user[:64])


async def leave(request, _visit):
    request.app.state.context.sessions.end(request.cookies.get(access.COOKIE))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(access.COOKIE, secure=True, httponly=True, samesite="strict")
    return answer


ROUTES = [access.page("/login", None, show), access.page("/login", None, enter, "POST"),
          access.page("/logout", roles.LOOK, leave, "POST")]
