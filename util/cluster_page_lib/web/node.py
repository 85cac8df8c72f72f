"""The page of a node: its state, actions on it, graphs of the last minutes, its links and endpoints, and why operations
wait."""
from urllib.parse import quote

from markupsafe import Markup
from starlette.responses import JSONResponse, RedirectResponse

from clusterd_lib import roles
from clusterd_lib.status import matrix
from clusterd_lib.status.text import stuck_peers, way_to

from . import access, forms, parts

ORDERS = {"drain": "Drain", "isolate": "Isolate", "resume": "Resume"}
REASON_MAX = 40


def _paths(endpoint):
    found = {}
    for peer in endpoint.get("peers", []):
        found[way_to(peer)] = found.get(way_to(peer), 0) + 1
    return ", ".join(f"{count} {path}" for path, count in sorted(found.items()))


async def _text(request, visit):
    context, name = request.app.state.context, request.path_params["name"]
    node = await context.cluster.node(name)
    status = await context.cluster.status()
    endpoints = [{**entry, "paths": _paths(entry), "stuck": stuck_peers(entry),
                  "again": sum(peer.get("retransmitted_frames", 0) for peer in entry.get("peers", []))}
                 for entry in status["endpoints"] if entry["node"] == name]
    links = [{**link, "kind": matrix.quality(link)} for link in status["links"] if link["from"] == name]
    return context.text("node_part.html", visit, node=node, links=links, endpoints=endpoints,
                        state=node["order"] if node["order"] and node["state"] in ("up", "returned") else node["state"],
                        findings=[entry for entry in status["findings"] if entry["node"] == name],
                        history=[event for event in status["history"] if event["node"] == name])


async def show(request, visit):
    text = await _text(request, visit)
    return request.app.state.context.page("node.html", visit, name=request.path_params["name"], orders=ORDERS,
                                          reason_max=REASON_MAX, part=Markup(parts.first(text)))


async def part(request, visit):
    return parts.answer(request, await _text(request, visit))


async def series(request, _visit):
    """What the graphs show, in columns: times, processor, memory, then the bytes per second in and out of each
    device."""
    name = request.path_params["name"]
    await request.app.state.context.cluster.node(name)
    samples = await request.app.state.context.cluster.series(name)
    devices = sorted({device for sample in samples for device in sample["rates"]})
    traffic = [[sample["rates"].get(device, [None, None])[way] for sample in samples] for device in devices for way in (0, 1)]
    return JSONResponse({"at": [sample["at"] for sample in samples], "cpu": [sample["cpu"] for sample in samples],
                         "memory": [sample["memory"] for sample in samples],
                         "devices": [f"{device} {way}" for device in devices for way in ("in", "out")], "traffic": traffic})


async def why(request, visit):
    name = request.path_params["name"]
    context = request.app.state.context
    await context.cluster.node(name)
    said = (await context.cluster.why(name)).strip() or "No endpoint of the provider is running on this node."
    return context.page("why_part.html", visit, text=said)


async def order(request, visit):
    context, name = request.app.state.context, request.path_params["name"]
    await context.cluster.node(name)
    wanted, reason = visit.form.get("order", ""), " ".join(visit.form.get("reason", "").split())
    if wanted not in ORDERS or not reason.isprintable() or len(reason) > REASON_MAX:
        raise forms.BadForm(f"no such action, or a reason of more than {REASON_MAX} characters")
    await context.cluster.order(visit.user, name, wanted, reason)
    if hasattr(context.jobs, "order"):
        await context.jobs.order(name, wanted, f"{visit.user}: {reason}" if reason else visit.user)
    return RedirectResponse(f"/node/{quote(name, safe='')}", 303)


ROUTES = [access.page("/node/{name}", roles.LOOK, show), access.page("/node/{name}/part", roles.LOOK, part),
          access.page("/node/{name}/series", roles.LOOK, series), access.page("/node/{name}/why", roles.LOOK, why),
          access.page("/node/{name}/order", roles.OPERATE, order, "POST")]
