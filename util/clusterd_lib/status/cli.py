"""Options of cluster-status."""
import argparse
import json
import os
import sys
import time

from cluster_lib import build

from .. import query
from ..errors import AgentError
from . import topology
from .text import Text

_EPILOG = """\
examples:
  cluster-status                            nodes, links, running endpoints, findings, history
  cluster-status --watch                    the same every two seconds
  cluster-status --json | jq '.nodes[] | select(.state != "up")'
  cluster-status --map > cluster.svg        nodes and rails as a picture
  cluster-status --drain node3 --reason "new disk"

The command asks the agent of this node (clusterd). On virtual nodes: vcluster exec node1 cluster-status"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')


def _parser():
    parser = _Parser(prog="cluster-status", description="The cluster as the agent of this node sees it.", epilog=_EPILOG,
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("--json", action="store_true", help="everything, for programs")
    add("--watch", nargs="?", type=float, const=2.0, metavar="SECONDS", help="repeat the output (default: every 2 seconds)")
    add("--map", action="store_true", help="the topology as SVG")
    add("--history", type=int, default=10, metavar="N", help="number of events (default: %(default)s)")
    add("--why", metavar="NODE", help="why operations of the endpoints on a node wait")
    add("--rate", metavar="NODE", help="measure the bandwidth to a node, for one second per rail")
    orders = parser.add_argument_group("commands for users that may operate")
    for order, text in (("drain", "give a node no new jobs"), ("isolate", "make the other agents refuse a node"),
                        ("resume", "undo both"), ("forget", "remove a node that is down for good")):
        orders.add_argument(f"--{order}", metavar="NODE", help=text)
    orders.add_argument("--reason", metavar="TEXT", default="", help="reason for the command, which the agents keep and show to all users")
    colours = parser.add_mutually_exclusive_group()
    colours.add_argument("--color", dest="color", action="store_true", default=None, help="colours even if this is no terminal")
    colours.add_argument("--no-color", dest="color", action="store_false", help="never")
    return parser


def _show(options):
    status = query.ask_locally("status", {"history": options.history})
    if options.json:
        return json.dumps(status, indent=1)
    if options.map:
        return topology.draw(status).rstrip()
    coloured = options.color if options.color is not None else sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return Text(coloured).everything(status)


def _watch(options):
    clear = "\x1b[H\x1b[2J" if sys.stdout.isatty() else ""
    while True:
        print(clear + _show(options), flush=True)
        time.sleep(max(0.2, options.watch))


def _rates(answer):
    return "\n".join(f"rail {entry['rail']}: {entry['bits_per_second'] / 1e9:.2f} Gbit/s" for entry in answer)


def _printable(text):
    """Several lines of other nodes and users as text for a terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in str(text)).rstrip()


def _run(options):
    for order in ("drain", "isolate", "resume"):
        node = getattr(options, order)
        if node:
            print(_printable(f"{node}: {query.ask_locally('order', {'node': node, 'order': order, 'reason': options.reason})}"))
            return 0
    if options.forget:
        print(f"{options.forget}: {query.ask_locally('forget', {'node': options.forget})}")
    elif options.why:
        print(_printable(query.ask_locally("why", {"node": options.why})))
    elif options.rate:
        print(_rates(query.ask_locally("rate", {"node": options.rate})))
    elif options.watch is not None:
        _watch(options)
    else:
        print(_show(options))
    return 0


def main(arguments):
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except AgentError as error:
        print(f"cluster-status: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
