"""State that all handlers share: the parts of the program, and the templates."""
import os
import time

import jinja2
from starlette.responses import HTMLResponse

from clusterd_lib import roles
from clusterd_lib.status import matrix

from ..jobs.records import Records
from ..machines import Machines
from ..terminals import Terminals
from ..watch import Watch

_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


class Context:
    def __init__(self, settings, cluster, accounts, sessions, role_cache, jobs):
        self.settings, self.cluster, self.accounts, self.sessions = settings, cluster, accounts, sessions
        self.roles, self.jobs, self.routes = role_cache, jobs, []
        self.machines, self.records = Machines(), Records(os.path.join(settings.state, "records"))
        self.terminals = Terminals(settings, cluster)
        self.watch = Watch(settings.state, cluster, jobs)
        self._shared, self.shared_state = {}, {}
        self._templates = jinja2.Environment(loader=jinja2.FileSystemLoader(os.path.join(_HERE, "templates")),
                                             autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self._templates.filters.update(ago=lambda at: matrix.ago(time.time() - at), clock=clock, day=day, stamp=stamp,
                                       duration=duration, span=span, whole_span=lambda seconds: span(seconds) if seconds >= 60 else f"{seconds:.0f} s", size=size)
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
    """The time, with the date if it was on another day."""
    return time.strftime("%H:%M:%S" if day(at) == day(time.time()) else "%Y-%m-%d %H:%M:%S", time.localtime(at))


def day(at):
    return time.strftime("%Y-%m-%d", time.localtime(at))


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))


def span(seconds):
    """A time that a job takes: 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count):
    """1.2 MB"""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count:.0f} B"
