"""cluster-map: what is wired to what, rail by rail, from the measurements of the agents."""
import argparse
import json
import sys

from cluster_lib import build

from .. import query
from ..errors import AgentError
from . import matrix, topology

NAMES_MAX = 8

_EPILOG = """\
examples:
  cluster-map                     each rail: its interfaces, and which nodes they reach
  cluster-map node1 node3         only these nodes, and the links between them and all others
  cluster-map --svg > map.svg     a picture

The command asks the agent of this node (clusterd). On virtual nodes: vcluster exec node1 cluster-map"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')


def _parser():
    parser = _Parser(prog="cluster-map", description="What is wired to what: the interfaces of each rail, and the nodes that they reach.",
                     epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("nodes", metavar="NODE", nargs="*", help="only these nodes (default: all)")
    add("--json", action="store_true", help="for programs")
    add("--svg", action="store_true", help="nodes and rails as a picture")
    return parser


def of_status(status, only=()):
    """An entry for each interface of a rail: where it is, what it is, and the peers that it reaches, well or badly, or not."""
    found, rails = [], matrix.of_links(status["links"])
    for node in status["nodes"]:
        for number, rail in enumerate(node["rails"] if not only or node["name"] in only else ()):
            peers = {matrix.GOOD: [], matrix.LOSSY: [], matrix.DOWN: [], matrix.NONE: []}
            for (source, peer), link in rails.get(number, {}).items():
                if source == node["name"]:
                    peers[matrix.quality(link)].append(peer)
            found.append({"rail": number, "node": node["name"], "device": rail["device"], "address": rail["address"],
                          "network": rail.get("network", ""), "mtu": rail["mtu"], "speed": rail.get("speed", 0), "up": rail.get("up", True),
                          "reaches": peers[matrix.GOOD], "lossy": peers[matrix.LOSSY], "cut": peers[matrix.DOWN]})
    return sorted(found, key=lambda entry: entry["rail"])


def _names(names):
    return " ".join(names[:NAMES_MAX]) + (f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else "")


def _line(entry):
    speed = f"{entry['speed'] / 1000:g} Gbit/s" if entry["speed"] else "-"
    parts = [] if entry["up"] else ["no carrier"]
    for word, kind in (("reaches", "reaches"), ("loses frames to", "lossy"), ("DOES NOT REACH", "cut")):
        if entry[kind]:
            parts.append(f"{word} {_names(entry[kind])}")
    return f"  {entry['node']:12} {entry['device']:10} {entry['address']:15} {speed:12} mtu {entry['mtu']:<6} {'; '.join(parts) or 'no peer'}"


def text(status, only=()):
    """One paragraph for each rail, then what is wrong with the wiring."""
    lines, entries = [], of_status(status, only)
    for number in sorted({entry["rail"] for entry in entries}):
        on_rail = [entry for entry in entries if entry["rail"] == number]
        networks = sorted({entry["network"] for entry in on_rail} - {""})
        lines.append(f"rail {number}  {' '.join(networks)}".rstrip())
        lines += map(_line, on_rail)
    silent = [node["name"] for node in status["nodes"] if not node["rails"] and (not only or node["name"] in only)]
    if silent:
        lines.append(f"nothing is known of the rails of {_names(silent)}")
    lines += [f"{entry['node']}: {entry['text']}" for entry in status["findings"] if not only or entry["node"] in only]
    return "\n".join(lines)


def _run(options):
    status = query.ask_locally("status", {"history": 0})
    unknown = set(options.nodes) - {node["name"] for node in status["nodes"]}
    if unknown:
        raise AgentError(f"{', '.join(sorted(unknown))}: unknown to the agent of this node")
    if options.svg:
        print(topology.draw(status).rstrip())
    elif options.json:
        print(json.dumps(of_status(status, options.nodes), indent=1))
    else:
        print(text(status, options.nodes))


def main(arguments):
    options = _parser().parse_args(arguments)
    try:
        _run(options)
        return 0
    except AgentError as error:
        print(f"cluster-map: {error}", file=sys.stderr)
        return 1
