"""Virtual machines: nodes are chosen by their buttons in the overview, and saved under a name; a page shows the machines."""
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from clusterd_lib import roles
from clusterd_lib.errors import AgentError

from . import access, forms, overview, parts

CHOSEN_MAX = 512
_PLACE = ("text", "state", "page")  # where in the table the user was


async def choose(request, visit):
    """Takes a node into the choice, or out of it; without a node, nothing stays chosen."""
    context, chosen = request.app.state.context, visit.session.chosen
    name = visit.form.get("node", "")
    if not name:
        chosen.clear()
    elif name in chosen:
        chosen.remove(name)
    else:
        await context.cluster.node(name)
        if len(chosen) >= CHOSEN_MAX:
            raise forms.BadForm(f"at most {CHOSEN_MAX} nodes can be chosen here; cluster-machine takes more")
        chosen.append(name)
    place = {field: visit.form.get(field, "") for field in _PLACE}
    if not request.headers.get("hx-request"):
        return RedirectResponse("/?" + urlencode(place), 303)
    nodes = parts.first(await overview.nodes_text(request, visit, place))
    return HTMLResponse(nodes + context.text("choice_part.html", visit, chosen=chosen, swap=True))


async def _states(context):
    return {node["name"]: overview.state_of(node) for node in (await context.cluster.status())["nodes"]}


async def _page(request, visit, status=200, trouble=""):
    context = request.app.state.context
    return context.page("machines.html", visit, status, machines=await context.machines.of(visit.user), states=await _states(context),
                        trouble=trouble, choice_bar=Markup(context.text("choice_part.html", visit, chosen=visit.session.chosen, swap=False)),
                        runs_jobs=context.jobs is not None)


async def show(request, visit):
    return await _page(request, visit)


async def save(request, visit):
    name = visit.form.get("name", "").strip()
    try:
        await request.app.state.context.machines.save(visit.user, name, visit.session.chosen)
    except AgentError as error:
        return await _page(request, visit, 400, str(error))
    visit.session.chosen.clear()
    return RedirectResponse(f"/machines#machine-{quote(name, safe='')}", 303)


async def edit(request, visit):
    """Chooses the nodes of a machine, for another one or a change."""
    visit.session.chosen[:] = (await request.app.state.context.machines.nodes_of(visit.user, visit.form.get("name", "")))[:CHOSEN_MAX]
    return RedirectResponse("/", 303)


async def remove(request, visit):
    await request.app.state.context.machines.remove(visit.user, visit.form.get("name", ""))
    return RedirectResponse("/machines", 303)


ROUTES = [access.page("/choose", roles.SUBMIT, choose, "POST"), access.page("/machines", roles.SUBMIT, show),
          access.page("/machines/save", roles.SUBMIT, save, "POST"), access.page("/machines/edit", roles.SUBMIT, edit, "POST"),
          access.page("/machines/remove", roles.SUBMIT, remove, "POST")]
