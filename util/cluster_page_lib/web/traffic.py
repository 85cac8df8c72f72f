"""The traffic of the whole cluster as a graph, and the jobs that ran meanwhile."""
import asyncio
import time

from starlette.responses import JSONResponse

from clusterd_lib import roles
from clusterd_lib.errors import AgentError

from . import access

NODES_MAX, AT_ONCE = 64, 16
STEP_SECONDS, KEPT_SECONDS, FRESH_SECONDS = 4, 600, 2.0
JOBS_MAX = 50


def added_up(series):
    """Times, and the bytes per second in and out of all nodes together. `series`: the samples of each node. A node counts with its
    mean in each step, so that nodes which measure at different moments add up."""
    steps = {}  # step -> node -> list of (in, out)
    for node, samples in series.items():
        for sample in samples:
            pairs = sample["rates"].values()
            steps.setdefault(int(sample["at"]) // STEP_SECONDS, {}).setdefault(node, []).append(
                (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)))
    times = sorted(steps)[:-1]  # the last one is not complete
    sums = [[sum(sum(pair[way] for pair in pairs) / len(pairs) for pairs in steps[at].values()) for at in times] for way in (0, 1)]
    return {"at": [at * STEP_SECONDS for at in times], "in": sums[0], "out": sums[1]}


class _Latest:
    """The newest answer, for all who look."""

    def __init__(self):
        self.value, self._at, self._asking = None, float("-inf"), asyncio.Lock()

    async def get(self, make):
        async with self._asking:
            if time.monotonic() - self._at > FRESH_SECONDS:
                self.value, self._at = await make(), time.monotonic()
            return self.value


async def _measured(context):
    nodes = [node["name"] for node in (await context.cluster.status())["nodes"] if node["state"] != "down"][:NODES_MAX]
    gate = asyncio.Semaphore(AT_ONCE)

    async def of_node(name):
        async with gate:
            try:
                return await context.cluster.series(name)
            except AgentError:
                return []  # it is silent: the others count

    return added_up(dict(zip(nodes, await asyncio.gather(*map(of_node, nodes)))))


async def _jobs(context):
    """Those that ran in the time of the graph."""
    since = time.time() - KEPT_SECONDS
    jobs = await context.jobs.jobs() if context.jobs else []
    return [job for job in jobs if job.started and (job.is_open or job.ended > since)][:JOBS_MAX]


async def show(request, visit):
    return request.app.state.context.page("traffic.html", visit, jobs=await _jobs(request.app.state.context))


async def series(request, _visit):
    context = request.app.state.context
    latest = context.shared_state.setdefault("traffic", _Latest())
    found = await latest.get(lambda: _measured(context))
    jobs = [{"number": job.number, "name": job.name, "from": job.started, "to": job.ended or None} for job in await _jobs(context)]
    return JSONResponse({**found, "jobs": jobs})


ROUTES = [access.page("/traffic", roles.LOOK, show), access.page("/traffic/series", roles.LOOK, series)]
