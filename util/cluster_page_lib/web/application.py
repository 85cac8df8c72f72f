"""The application: all routes behind the guard."""
import contextlib

from starlette.applications import Starlette
from starlette.middleware import Middleware

from . import books, files, job_pages, login, machine_pages, node, overview, static_files, terminal, traffic
from .access import Visit
from .guard import Guard


def make(context):
    async def not_found(request, _error):
        return context.error(request, Visit(None), 404, "There is no such page.")

    @contextlib.asynccontextmanager
    async def alive(_application):
        if context.jobs:
            await context.jobs.start()
        context.watch.start()
        yield
        await context.watch.stop()
        if context.jobs:
            await context.jobs.stop()

    context.routes = [*login.ROUTES, *overview.ROUTES, *node.ROUTES, *job_pages.ROUTES, *machine_pages.ROUTES, *books.ROUTES,
                      *traffic.ROUTES, *files.ROUTES, *terminal.ROUTES, *static_files.routes()]
    application = Starlette(routes=context.routes, lifespan=alive,
                            middleware=[Middleware(Guard)], exception_handlers={404: not_found})
    application.state.context = context
    return application
