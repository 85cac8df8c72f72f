"""What has been: the events of the cluster with their dates, and what each user and job has used."""
import re

from clusterd_lib import roles

from . import access
from .context import day

SHOWN_MAX = 500
PERIODS = {"1": "the last day", "7": "the last week", "30": "the last month", "": "all that is known"}


def _groups(events):
    """(day, events) for each day, the newest first."""
    groups = []
    for event in events:
        if not groups or groups[-1][0] != day(event["at"]):
            groups.append((day(event["at"]), []))
        groups[-1][1].append(event)
    return groups


async def history(request, visit):
    context, query = request.app.state.context, request.query_params
    node, text = query.get("node", "")[:64], query.get("text", "")[:64]
    wanted = query.get("day", "") if re.fullmatch(r"\d{4}-\d{2}-\d{2}", query.get("day", "")) else ""
    await context.watch.look()
    found = [event for event in reversed(context.watch.events.entries)
             if node in ("", event["node"]) and text.lower() in event["text"].lower() and wanted in ("", day(event["at"]))]
    names = [entry["name"] for entry in (await context.cluster.status())["nodes"]]
    return context.page("history.html", visit, groups=_groups(found[:SHOWN_MAX]), more=max(0, len(found) - SHOWN_MAX), node=node, text=text,
                        wanted=wanted, names=names)


async def accounts(request, visit):
    context = request.app.state.context
    period = request.query_params.get("days", "30")
    period = period if period in PERIODS else "30"
    await context.watch.look()
    own = [entry for entry in reversed(context.watch.accounts.entries) if entry["user"] == visit.user or visit.may_operate]
    return context.page("accounts.html", visit, rows=context.watch.by_user(int(period) if period else None), period=period, periods=PERIODS,
                        jobs=own[:SHOWN_MAX])


ROUTES = [access.page("/history", roles.LOOK, history), access.page("/accounts", roles.LOOK, accounts)]
