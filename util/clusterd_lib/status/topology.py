"""Nodes and rails as SVG: rails are bars, nodes stand above and below, a line leads from a node to each of its rails. Lines from
above use the left half of a box, those from below the right half, so that no two nodes share a line.

The page includes the SVG unchanged, so this module escapes every text in it.

Only what is not well has a colour; a word or the kind of line says the same, for people who do not see colours. A large cluster
becomes a field of squares, each with its name as a title.
"""
from xml.sax.saxutils import escape, quoteattr

from . import matrix

LINES_NODES_MAX = 64
_CALM = "#6e7781"
_STATE = {"returned": "#0969da", "suspect": "#9a4a00", "isolated": "#8250df", "drained": "#8250df", "down": "#cf222e"}
_LINE = {matrix.GOOD: (_CALM, ""), matrix.LOSSY: ("#bc4c00", "6 3"), matrix.DOWN: ("#cf222e", "2 4"), matrix.NONE: (_CALM, "1 3")}
_FONT = "font-family='system-ui, sans-serif'"
_WIDTH, _HEIGHT, _GAP, _RAIL_GAP = 104, 44, 12, 34


def draw(status):
    nodes, links = status["nodes"], status["links"]
    rails = max((len(node["rails"]) for node in nodes), default=0)
    if len(nodes) > LINES_NODES_MAX:
        return _field(nodes)
    columns = max(2, (len(nodes) + 1) // 2)
    width = columns * (_WIDTH + _GAP) + 80
    top, middle = 16, 16 + _HEIGHT + 28
    bottom = middle + rails * _RAIL_GAP + 20
    shapes = []
    for rail in range(rails):
        y = middle + rail * _RAIL_GAP
        shapes.append(f"<rect x='70' y='{y}' width='{width - 80}' height='8' rx='4' fill='#57606a'/>"
                      f"<text x='8' y='{y + 9}' font-size='13' fill='currentColor'>rail {rail}</text>")
    for number, node in enumerate(nodes):
        x = 76 + number // 2 * (_WIDTH + _GAP)
        y = top if number % 2 == 0 else bottom
        shapes += _lines(node, links, rails, x, y, middle, number % 2 == 0)
        shapes.append(_box(node, x, y))
    return _svg(width, bottom + _HEIGHT + 12, f"{len(nodes)} nodes on {rails} rails", shapes)


def _lines(node, links, rails, x, y, middle, above):
    for rail in range(min(rails, len(node["rails"])) if node["state"] != "down" else rails):
        quality = matrix.DOWN if node["state"] == "down" else matrix.of_node(links, node["name"], rail)
        colour, dashes = _LINE[quality]
        end = x + (10 if above else _WIDTH / 2 + 8) + (rail + 0.5) * (_WIDTH / 2 - 18) / rails
        bar = middle + rail * _RAIL_GAP + (0 if above else 8)
        yield (f"<line x1='{end:.0f}' y1='{y + _HEIGHT if above else y}' x2='{end:.0f}' y2='{bar}' stroke='{colour}' "
               f"stroke-width='3' stroke-dasharray='{dashes}'><title>{escape(node['name'])} rail {rail}: {quality}</title></line>")
        if quality != matrix.DOWN:
            yield f"<circle cx='{end:.0f}' cy='{bar + (4 if above else -4)}' r='5' fill='{colour}'/>"


def _box(node, x, y):
    state = node["order"] if node["order"] and node["state"] in ("up", "returned") else node["state"]
    colour, ink = (_STATE[state], "#fff") if state in _STATE else ("none", "currentColor")
    words = node["state"] if not node["order"] or node["order"] == node["state"] else f"{node['state']}, {node['order']}"
    label = quoteattr(f"{node['name']}: {words}")
    name = node["name"] if len(node["name"]) <= 13 else node["name"][:12] + "\u2026"
    return (f"<g role='img' aria-label={label}><rect x='{x}' y='{y}' width='{_WIDTH}' height='{_HEIGHT}' rx='6' fill='{colour}' stroke='{_CALM}' stroke-width='1.5'/>"
            f"<text x='{x + 9}' y='{y + 19}' font-size='14' font-weight='600' fill='{ink}'>{escape(name)}</text>"
            f"<text x='{x + 9}' y='{y + 36}' font-size='12' fill='{ink}'>{escape(words)}</text></g>")


def _field(nodes):
    columns, side = 40, 22
    shapes = []
    for number, node in enumerate(nodes):
        x, y = 10 + number % columns * side, 10 + number // columns * side
        shapes.append(f"<rect x='{x}' y='{y}' width='{side - 3}' height='{side - 3}' rx='3' "
                      f"fill='{_STATE.get(node['state'], _CALM)}'><title>{escape(node['name'] + ': ' + node['state'])}</title></rect>")
    return _svg(20 + columns * side, 20 + (len(nodes) + columns - 1) // columns * side, f"{len(nodes)} nodes", shapes)


def _svg(width, height, title, shapes):
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' role='group' {_FONT} "
            f"aria-label={quoteattr(title)}><title>{escape(title)}</title>" + "".join(shapes) + "</svg>\n")
