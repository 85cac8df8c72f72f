"""Options of cluster-machine."""
import argparse
import json
import sys

from cluster_lib import build, system_errors
from clusterd_lib import query
from clusterd_lib.errors import AgentError

from . import store

_EPILOG = """\
examples:
  cluster-machine lab node1 node3      saves these two nodes as the machine `lab`
  cluster-machine lab --any 4          saves the four nodes that have least to do
  cluster-machine lab                  shows its nodes and their states
  cluster-machine                      shows all machines
  cluster-run -m lab ./program         runs a program on it

The command asks the agent of this node (clusterd) which nodes there are."""


class Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')


def _parser():
    parser = Parser(prog="cluster-machine", description="Saves a set of nodes under a name, as a virtual machine.",
                    epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("name", metavar="NAME", nargs="?", help="name of the machine")
    add("nodes", metavar="NODE", nargs="*", help="nodes to save under this name")
    add("--any", type=int, metavar="N", help="choose this many nodes that can run jobs, those with the least load first")
    add("--remove", action="store_true", help="forget the machine")
    add("--hostfile", action="store_true", help="show the nodes of the machine one per line, as launchers read them")
    add("--json", action="store_true", help="all machines, for programs")
    return parser


def known_nodes():
    """Name -> what the agent knows of it."""
    return {node["name"]: node for node in query.ask_locally("status", {"wait": False, "history": 0})["nodes"]}


def state_of(node):
    """One word, with the order of an operator before the state."""
    if node is None:
        return "unknown"
    return node["order"] if node["order"] and node["state"] in ("up", "returned") else node["state"]


def _least_loaded(count):
    good = [node for node in known_nodes().values() if state_of(node) in ("up", "returned")]
    if not 0 < count <= len(good):
        raise AgentError(f"--any {count}: {len(good)} nodes can run jobs")
    chosen = sorted(good, key=lambda node: node["load"] or 0.0)[:count]
    return [node["name"] for node in good if node in chosen]


def _check_known(nodes):
    unknown = [name for name in nodes if name not in known_nodes()]
    if unknown:
        raise AgentError(f"{', '.join(unknown)}: unknown to the agent of this node")


def _show(machines):
    known = known_nodes()
    for name, nodes in sorted(machines.items()):
        states = [state_of(known.get(node)) for node in nodes]
        good = sum(state in ("up", "returned") for state in states)
        print(f"{name}: {good} of {len(nodes)} nodes can run jobs")
        for node, state in zip(nodes, states):
            print(f"  {node:12} {state}")
    if not machines:
        print('no machine is saved: "cluster-machine NAME NODE..." saves one')


def _run(options):
    if options.json:
        print(json.dumps(store.load()))
    elif options.name is None:
        _show(store.load())
    elif options.remove:
        store.remove(options.name)
        print(f"{options.name}: removed")
    elif options.nodes or options.any is not None:
        nodes = options.nodes or _least_loaded(options.any)
        _check_known(nodes)
        store.save(options.name, nodes)
        print(f"{options.name}: {', '.join(store.nodes_of(options.name))}")
    elif options.hostfile:
        print("\n".join(store.nodes_of(options.name)))
    else:
        _show({options.name: store.nodes_of(options.name)})


def main(arguments):
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.nodes or options.any is not None or options.remove or options.hostfile) and options.name is None:
        parser.error("which machine? Its NAME comes first")
    if options.nodes and options.any is not None:
        parser.error("nodes or --any, not both")
    try:
        _run(options)
        return 0
    except AgentError as error:
        print(f"cluster-machine: {error}", file=sys.stderr)
    except OSError as error:
        print(f"cluster-machine: {system_errors.in_words(error)}", file=sys.stderr)
    return 1
