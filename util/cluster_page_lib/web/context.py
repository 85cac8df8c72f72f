"""State that all handlers share: the parts of the program, and the templates."""
import os
import time

import jinja2
from starlette.responses import HTMLResponse

from clusterd_lib import roles
from clusterd_lib.status import matrix

_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


class Context:
    def __init__(self, settings, cluster, accounts, sessions, role_cache, jobs):
        self.settings, self.cluster, self.accounts, self.sessions = settings, cluster, accounts, sessions
        self.roles, self.jobs, self.routes = role_cache, jobs, []
        self._shared = {}
        self._templates = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.join(_HERE, "templates")),
                                             autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self._templates.filters.update(ago=lambda at: matrix.ago(time.time() - at), clock=clock,
                                       duration=duration)
        self._templates.globals["role_names"] = roles.NAMES

    def shared(self, name, status, make):
        """The result of `make()`, computed once while the agent's answer is unchanged."""
        kept = self._shared.get(name)
        if kept is None or kept[0] is not status:
            kept = self._shared[name] = (status, make())
        return kept[1]

    def text(self, template, visit, **values):
        return self._templates.get_template(template).render(visit=visit, **values)

    def page(self, template, visit, status=200, **values):
        return HTMLResponse(self.text(template, visit, **values), status)

    def error(self, request, visit, status, text):
        """An error as a page, or as a line for a part of a page."""
        template = "error_line.html" if request.headers.get("hx-request") else "error.html"
        return self.page(template, visit, status, text=text)


def duration(seconds):
    return matrix.duration(seconds).replace("us", " \u00b5s").replace("ms", " ms")


def clock(at):
    return time.strftime("%Y-%m-%d %H:%M:%S" if time.time() - at > 80000 else "%H:%M:%S", time.localtime(at))
