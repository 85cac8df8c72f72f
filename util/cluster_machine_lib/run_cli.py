"""Options of cluster-run."""
import argparse
import os
import sys

from cluster_lib import build, system_errors
from clusterd_lib import query
from clusterd_lib.errors import AgentError
from clusterd_lib.protocol.wire import is_name

from . import launch, store
from .cli import Parser

RANKS_MAX = 1 << 20

_EPILOG = """\
examples:
  cluster-run -m lab ./program                   one process on each node of the machine `lab`
  cluster-run -m lab -n 8 ./program --fast       eight processes
  cluster-run --nodes node1,node2 ./program
  cluster-run -m lab --launcher srun ./program   through Slurm instead of mpirun
  cluster-run -m lab sh -c 'exec ./ring $RANK $SIZE $FIRST'
                                                 a program without MPI

Each process has in its environment: RANK, SIZE, LOCAL_RANK (the number on its node), ADDRESSES (of the node of each
rank, with commas), FIRST (an address and a port of rank 0), and FI_PROVIDER=cluster unless you have set FI_PROVIDER.
The machine is $CLUSTER_MACHINE without -m. The program has to be at the same path on every node."""


def _parser():
    parser = Parser(prog="cluster-run", description="Runs a program on the nodes of a virtual machine.", epilog=_EPILOG,
                    usage="cluster-run [OPTIONS] PROGRAM [ARGUMENTS]", formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("-m", "--machine", metavar="NAME", default=os.environ.get("CLUSTER_MACHINE", ""), help="the machine (see cluster-machine)")
    add("--nodes", metavar="LIST", default="", help="these nodes instead of a machine, such as node1,node2")
    add("-n", "--ranks", type=int, metavar="N", help="number of processes (default: one per node)")
    add("--launcher", metavar="LAUNCHER", default="", help="srun, the path of an mpirun, the directory of an MPI library, or a name "
        "such as mpich for mpirun.mpich (default: mpirun in PATH)")
    add("--show", action="store_true", help="show what would run, and run nothing")
    add("words", metavar="PROGRAM", nargs=argparse.REMAINDER, help="the program and its arguments")
    return parser


def _nodes(options):
    if options.nodes:
        nodes = list(dict.fromkeys(options.nodes.split(",")))
        if not all(map(is_name, nodes)):
            raise AgentError(f"--nodes {options.nodes}: names of nodes, separated by commas")
        return nodes
    if options.machine:
        return store.nodes_of(options.machine)
    raise AgentError("on which nodes? -m MACHINE or --nodes LIST")


def _addresses():
    """Node -> its address on the first rail; nothing without an agent: then the names have to do."""
    try:
        found = query.ask_locally("status", {"wait": False, "history": 0})["nodes"]
    except AgentError:
        return {}
    return {node["name"]: node["rails"][0]["address"] for node in found if node["rails"]}


def main(arguments):
    parser = _parser()
    options = parser.parse_args(arguments)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        parser.error("which program?")
    try:
        nodes = _nodes(options)
        ranks = len(nodes) if options.ranks is None else options.ranks
        if not 1 <= ranks <= RANKS_MAX:
            parser.error(f"--ranks {ranks}: 1 to {RANKS_MAX}")
        nodes = nodes[:ranks]
        values = launch.environment(nodes, ranks, _addresses(), os.environ.get("CLUSTER_JOB", ""))
        line, values = launch.command(options.launcher, nodes, ranks, values, words)
        if options.show:
            print("\n".join([*(f"{name}={value}" for name, value in sorted(values.items())), " ".join(line)]))
            return 0
        os.execvpe(line[0], line, {**os.environ, **values})
    except AgentError as error:
        print(f"cluster-run: {error}", file=sys.stderr)
    except OSError as error:
        print(f"cluster-run: {system_errors.in_words(error)}", file=sys.stderr)
    return 1
