"""The application: all routes behind the guard."""
import contextlib

from starlette.applications import Starlette
from starlette.middleware import Middleware

from . import job_pages, login, node, overview, static_files
from .access import Visit
from .guard import Guard


def make(context):
    async def not_found(request, _error):
        return context.error(request, Visit(None), 404, "There is no such page.")

    @contextlib.asynccontextmanager
    async def alive(_application):
        if context.jobs:
            await context.jobs.start()
        yield
        if context.jobs:
            await context.jobs.stop()

    context.routes = [*login.ROUTES, *overview.ROUTES, *node.ROUTES, *job_pages.ROUTES, *static_files.routes()]
    application = Starlette(routes=context.routes, lifespan=alive,
                            middleware=[Middleware(Guard)], exception_handlers={404: not_found})
    application.state.context = context
    return application
