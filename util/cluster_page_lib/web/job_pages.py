"""Pages about jobs: the queue, the form, a job with its live output, cancel. Only the job's user and operators see
output."""
import codecs
import contextlib
import re
import time
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from clusterd_lib import audit, roles
from clusterd_lib.errors import AgentError

from ..jobs import job as job_module
from . import access, files, forms, parts

SHOWN_MAX = 200
_EMPTY = {"name": "", "nodes": "2", "ranks": "4", "minutes": "60", "program": "", "arguments": "", "environment": "", "script": "", "machine": ""}


def _queue(request):
    queue = request.app.state.context.jobs
    if queue is None:
        raise AgentError("this page runs no jobs (--jobs none)")
    return queue


def _may_read(visit, job):
    return job.user == visit.user or visit.may_operate


async def _found(request, visit, to_read=False):
    job = await _queue(request).job(request.path_params["job"])
    if job is None or to_read and not _may_read(visit, job):
        raise forms.BadForm("there is no such job, or it is not yours", 404)
    return job


async def _list_text(request, visit):
    jobs = await _queue(request).jobs()
    return request.app.state.context.text("jobs_part.html", visit, jobs=jobs[:SHOWN_MAX], more=max(0, len(jobs) - SHOWN_MAX))


async def show(request, visit):
    return request.app.state.context.page("jobs.html", visit, title=_queue(request).title,
                                          part=Markup(parts.first(await _list_text(request, visit))))


async def part(request, visit):
    return parts.answer(request, await _list_text(request, visit))


def _asked(request, visit, job):
    """The form of which the job was made, for those who may see it."""
    queue = _queue(request)
    if not _may_read(visit, job):
        return None
    return request.app.state.context.records.find(queue.kind, job, getattr(queue, "called", str))


async def _machines(request, visit):
    """None where they cannot be read: the form then offers any nodes."""
    with contextlib.suppress(AgentError):
        return await request.app.state.context.machines.of(visit.user)
    return {}


async def form(request, visit):
    """Empty, or filled: `machine`, an earlier job to run `again`, or a file to `run`, a script or a program."""
    query, fields = request.query_params, dict(_EMPTY)
    if query.get("again"):
        found = await _queue(request).job(query["again"])
        asked = _asked(request, visit, found) if found else None
        fields.update({name: asked[name] for name in _EMPTY} if asked else {})
    if query.get("run"):
        path = files.path_of(query["run"])
        try:
            fields["script"] = await files.read_text(visit.user, path)
        except files.NoText:
            fields["program"] = await files.whole_path(visit.user, path)
        fields.update(name=re.sub(r"[^A-Za-z0-9._+-]", "-", path.rpartition("/")[2])[:64])
    machines = await _machines(request, visit)
    if query.get("machine") in machines:
        fields.update(machine=query["machine"], ranks=str(len(machines[query["machine"]])))
    return request.app.state.context.page("submit.html", visit, fields=fields, trouble="", title=_queue(request).title, machines=machines)


async def submit(request, visit):
    context, queue, machine = request.app.state.context, _queue(request), visit.form.get("machine", "")
    try:
        wanted = job_module.read(visit.form, await context.machines.nodes_of(visit.user, machine) if machine else ())
        number = await queue.submit(visit.user, wanted)
        audit.note("job submitted", user=visit.user, job=number, name=wanted.name, nodes=wanted.nodes, program=(wanted.words or [""])[0])
    except (job_module.BadRequest, AgentError) as error:
        fields = {**_EMPTY, **{name: visit.form[name] for name in _EMPTY if name in visit.form}}
        return context.page("submit.html", visit, 400, fields=fields, trouble=str(error), title=queue.title,
                            machines=await _machines(request, visit))
    context.records.keep(queue.kind, number, visit.user, visit.form)
    context.watch.wake()
    return RedirectResponse(f"/jobs/{quote(number, safe='')}", 303)


def _job_text(request, visit, job):
    return request.app.state.context.text("job_part.html", visit, job=job, may_cancel=job.is_open and _may_read(visit, job))


def _use_text(request, visit, job):
    """What changes all the time: a part of its own, so that the button to cancel stays in its place."""
    context = request.app.state.context
    return context.text("use_part.html", visit, job=job, use=context.watch.use_of(job), now=time.time())


async def show_job(request, visit):
    job = await _found(request, visit)
    asked = _asked(request, visit, job)
    return request.app.state.context.page("job.html", visit, job=job, may_read=_may_read(visit, job), asked=asked,
                                          use=Markup(parts.first(_use_text(request, visit, job))),
                                          part=Markup(parts.first(_job_text(request, visit, job))))


async def job_part(request, visit):
    return parts.answer(request, _job_text(request, visit, await _found(request, visit)))


async def use_part(request, visit):
    return parts.answer(request, _use_text(request, visit, await _found(request, visit)))


async def output(request, visit):
    """The output since `from`, and, as long as there can be more, an element that asks for the rest."""
    job = await _found(request, visit, to_read=True)
    text = request.query_params.get("from", "0")
    offset = int(text) if re.fullmatch("[0-9]{1,15}", text) else 0
    was_open = job.is_open
    piece, behind = await _queue(request).output(job, offset)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    words = decoder.decode(piece, final=not was_open)
    behind -= len(decoder.getstate()[0])  # the rest of a character comes with the next piece
    return HTMLResponse(request.app.state.context.text("output_part.html", visit, job=job, words=words, behind=behind,
                                                       more=was_open or bool(piece)))


async def why(request, visit):
    """Why the job makes no progress."""
    job = await _found(request, visit, to_read=True)
    lines = await request.app.state.context.cluster.why_job(job.number, job.user)
    return request.app.state.context.page("why_part.html", visit, text="\n".join(lines))


async def cancel(request, visit):
    job = await _found(request, visit, to_read=True)
    if job.is_open:
        audit.note("job cancelled", user=visit.user, job=job.number, owner=job.user)
        await _queue(request).cancel(job, visit.user)
    return RedirectResponse(f"/jobs/{quote(job.number, safe='')}", 303)


ROUTES = [access.page("/jobs", roles.LOOK, show), access.page("/part/jobs", roles.LOOK, part),
          access.page("/jobs/new", roles.SUBMIT, form), access.page("/jobs/new", roles.SUBMIT, submit, "POST"),
          access.page("/jobs/{job}", roles.LOOK, show_job), access.page("/jobs/{job}/part", roles.LOOK, job_part),
          access.page("/jobs/{job}/use", roles.LOOK, use_part), access.page("/jobs/{job}/output", roles.LOOK, output), access.page("/jobs/{job}/why", roles.LOOK, why),
          access.page("/jobs/{job}/cancel", roles.SUBMIT, cancel, "POST")]
