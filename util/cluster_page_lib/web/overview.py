"""The overview: nodes, the picture, links, findings, history; large clusters get a paged table."""
import collections

from markupsafe import Markup

from clusterd_lib import roles
from clusterd_lib.status import matrix, topology

from . import access, parts
from .context import duration

CARDS_MAX = 48
ROWS_A_PAGE = 50
STATES = ("up", "returned", "suspect", "isolated", "down", "drained")


def state_of(node):
    return node["order"] if node["order"] and node["state"] in ("up", "returned") else node["state"]


def _matrices(status):
    """(rail, rows of (node, cells)) for each rail; a cell is (kind, words, title)."""
    names = [node["name"] for node in status["nodes"]]
    if len(names) > 64:
        return [], names
    found = []
    for rail, links in matrix.of_links(status["links"]).items():
        rows = [(source, [_cell(source, peer, rail, links.get((source, peer))) for peer in names]) for source in names]
        found.append((rail, rows))
    return found, names


def _cell(source, peer, rail, link):
    if source == peer:
        return "self", "\u00b7", ""
    kind = matrix.quality(link)
    if kind in (matrix.DOWN, matrix.NONE):
        return kind, {matrix.DOWN: "down", matrix.NONE: "\u2013"}[kind], f"{source} to {peer}, rail {rail}: {kind}"
    words = duration(link["rtt_us"] * 1e-6)
    if kind == matrix.LOSSY:
        words += f" {link['loss'] * 100:.0f} %" if link["loss"] > matrix.LOSS_BAD else f" MTU {link['path_mtu']}"
    return kind, words, f"{source} to {peer}, rail {rail}: {words}, loss {link['loss'] * 100:.1f} %, MTU {link['path_mtu']}"


async def nodes_text(request, visit, query):
    """The nodes of this page, as `query` chooses them."""
    context = request.app.state.context
    status = await context.cluster.status()
    choice = Choice(query)
    shown, count, pages = choice.of(status["nodes"])
    counts = collections.Counter(state_of(node) for node in status["nodes"])
    large = len(status["nodes"]) > CARDS_MAX
    return context.text("nodes_part.html", visit, nodes=shown, count=count, pages=pages, choice=choice, large=large,
                        total=len(status["nodes"]), counts=[(state, counts[state]) for state in STATES if counts[state]],
                        state_of=state_of, chosen=visit.session.chosen)


class Choice:
    """The part of a large cluster that is shown; the URL alone decides it."""

    def __init__(self, query):
        self.text = query.get("text", "")[:64]
        self.state = query.get("state", "") if query.get("state", "") in STATES else ""
        try:
            self.number = max(0, int(query.get("page", "0")))
        except ValueError:
            self.number = 0

    def of(self, nodes):
        """(nodes of this page, number of all nodes, number of pages)"""
        found = [node for node in nodes if self.text.lower() in node["name"].lower() and self.state in ("", state_of(node))]
        pages = max(1, -(-len(found) // ROWS_A_PAGE))
        self.number = min(self.number, pages - 1)
        return found[self.number * ROWS_A_PAGE:(self.number + 1) * ROWS_A_PAGE], len(found), pages


async def _nodes_text(request, visit):
    return await nodes_text(request, visit, request.query_params)


async def _links_text(request, visit):
    context = request.app.state.context
    status = await context.cluster.status()

    def make():
        matrices, names = _matrices(status)
        bad = [link for link in status["links"] if matrix.quality(link) in (matrix.DOWN, matrix.LOSSY)][:200]
        return context.text("links_part.html", visit, matrices=matrices, names=names, bad=bad, many=len(names) > 64,
                            picture=Markup(topology.draw(status)))  # it escapes all text
    return context.shared("links", status, make)


async def _events_text(request, visit):
    context = request.app.state.context
    status = await context.cluster.status()
    all_well = all(node["state"] in ("up", "returned") for node in status["nodes"]) and \
        all(matrix.quality(link) in (matrix.GOOD, matrix.NONE) for link in status["links"])
    return context.text("events_part.html", visit, findings=status["findings"], history=status["history"], all_well=all_well)


_PARTS = {"nodes": _nodes_text, "links": _links_text, "events": _events_text}


async def show(request, visit):
    context = request.app.state.context
    texts = {name: Markup(parts.first(await make(request, visit))) for name, make in _PARTS.items()}
    status = await context.cluster.status()
    choice_bar = Markup(context.text("choice_part.html", visit, chosen=visit.session.chosen, swap=False))
    return context.page("overview.html", visit, choice_bar=choice_bar, seen_from=status["cluster"]["seen_from"], choice=Choice(request.query_params),
                        states=STATES, large=len(status["nodes"]) > CARDS_MAX, **texts)


def _part(name):
    async def serve(request, visit):
        return parts.answer(request, await _PARTS[name](request, visit))
    return access.page(f"/part/{name}", roles.LOOK, serve)


ROUTES = [access.page("/", roles.LOOK, show), *(_part(name) for name in _PARTS)]
