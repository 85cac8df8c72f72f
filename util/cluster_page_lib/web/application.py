"""The application: all routes behind the guard."""
from starlette.applications import Starlette
from starlette.middleware import Middleware

from . import login, node, overview, static_files
from .access import Visit
from .guard import Guard


def make(context):
    async def not_found(request, _error):
        return context.error(request, Visit(None), 404, "There is no such page.")

    context.routes = [*login.ROUTES, *overview.ROUTES, *node.ROUTES, *static_files.routes()]
    application = Starlette(routes=context.routes,
                            middleware=[Middleware(Guard)], exception_handlers={404: not_found})
    application.state.context = context
    return application
