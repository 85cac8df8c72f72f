"""Options, help and output."""
import argparse
import json
import os
import shutil
import sys

from cluster_lib import build, job_key, system_errors

from . import accounts, agents, agents_cli, cluster, faults_cli, gridengine, launchers, mpi_job, namespaces, network, page, processes, slurm, state
from .errors import VclusterError

_EPILOG = """\
examples:
  vcluster up -n 4 --rails 2          four nodes, two rails
  vcluster exec node2 ip addr         look around in the second one
  vcluster mpirun -np 8 ./program     two ranks on each
  vcluster up -n 4 --agents           four nodes with agents, and a page for a browser
  vcluster down                       nothing is left

Nodes are namespaces of this machine: own host name, network, IPC, mounts, /dev/shm and temporary directory; the file
system and the processors are shared. VCLUSTER_NAME in the environment replaces the default of --name."""


class _Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')


def _with_name(parser):
    parser.add_argument("--name", metavar="NAME", default=os.environ.get("VCLUSTER_NAME", "default"),
                        help="name of the cluster (default: %(default)s)")
    return parser


def _parser():
    parser = _Parser(prog="vcluster", description="Virtual nodes on one machine, joined by virtual Ethernet.",
                     epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version=f"%(prog)s {build.version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)

    up = _with_name(commands.add_parser("up", help="make a cluster"))
    up.add_argument("-n", "--nodes", type=int, default=4, metavar="N",
                    help=f"number of nodes, 1 to {cluster.NODES_MAX} (default: %(default)s)")
    up.add_argument("--rails", type=int, default=1, metavar="R",
                    help=f"Ethernet interfaces per node, each on a bridge of its own, 1 to {cluster.RAILS_MAX} "
                         "(default: %(default)s)")
    up.add_argument("--mtu", type=int, default=1500, metavar="BYTES",
                    help=f"largest packet, {cluster.MTU_MIN} to {cluster.MTU_MAX} (default: %(default)s)")
    up.add_argument("--rate", metavar="RATE",
                    help="shape every port of every node in both directions, such as 1gbit (default: not shaped)")
    up.add_argument("--agents", action="store_true",
                    help="start an agent (clusterd) in every node, and the page (cluster-page) in the first")
    up.add_argument("--slurm", action="store_true", help="start Slurm in the nodes; the page runs its jobs through it")
    up.add_argument("--slurm-rest", action="store_true", help="the same with slurmrestd, which the page then asks in the place of commands")
    up.add_argument("--gridengine", action="store_true", help="start Grid Engine in the nodes; the page runs its jobs through it")
    up.add_argument("--no-page", action="store_true", help="with --agents: start agents only")

    exec_ = _with_name(commands.add_parser("exec", help="run a command in a node"))
    exec_.add_argument("node", metavar="NODE", help="node1, node2... or just the number; or `switch`, where the "
                                                   "bridges rail0, rail1... and the ports n1r0 (node1, rail 0)... are")
    exec_.add_argument("words", metavar="CMD", nargs=argparse.REMAINDER, help="command and arguments (default: a shell)")

    mpirun = commands.add_parser(
        "mpirun", help="run an MPI job over the nodes",
        usage="vcluster mpirun [--name NAME] [--mpi MPI] [--slots S] [--on NODE,NODE] [--key] [--coll] [MPIRUN OPTIONS] PROGRAM "
              "[ARGUMENTS]",
        description="Runs the mpirun of Open MPI, MPICH or Intel MPI in the first chosen node, with one daemon per node. "
                    "The options below are vcluster's own; all others go to mpirun unchanged. Every rank gets the current "
                    "environment. The exit status is mpirun's. No process of the job remains.")
    _with_name(mpirun)
    mpirun.add_argument("--mpi", metavar="MPI",
                        help="which mpirun: the directory of an installation, the path of an mpirun, or a name such as mpich "
                             "for mpirun.mpich (default: mpirun in PATH)")
    mpirun.add_argument("--slots", type=int, metavar="S",
                        help="ranks per node before the next node is used (default: what spreads -np over all nodes); if you choose it, "
                             "processes that Open MPI's ranks spawn need free ones")
    mpirun.add_argument("--on", metavar="NODES", help="only these nodes, in this order, such as node1,node3")

    mpirun.add_argument("--key", action="store_true",
                        help="make a key for this job: endpoints of the provider communicate only with those of the same job")
    mpirun.add_argument("--coll", action="store_true",
                        help="preload libcluster-coll: broadcasts, barriers, reductions and allgathers go over the provider, "
                             "whatever MPI uses for the rest")

    faults_cli.add_parser(commands, _with_name)
    agents_cli.add_parser(commands, _with_name)

    list_ = commands.add_parser("list", help="show the clusters of this machine")
    list_.add_argument("--json", action="store_true", help="for programs")

    _with_name(commands.add_parser("down", help="end everything in the nodes and remove them"))
    agent = _with_name(commands.add_parser("agent", help="run a command in a node, instead of ssh (for launchers)"))
    agent.add_argument("words", metavar="NODE CMD", nargs=argparse.REMAINDER)
    return parser


def _split_mpirun(arguments):
    """Separates vcluster's own options from those of mpirun; both end where the program begins."""
    own, others = [], []
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest[0]
        if word in ("-h", "--help"):
            return [word], []
        if word in ("--key", "--coll"):
            length, target = 1, own
        elif word.partition("=")[0] in ("--name", "--mpi", "--slots", "--on"):
            length, target = (1 if "=" in word else 2), own
        else:
            length, target = launchers.option_length(word), others
        target += rest[:length]
        del rest[:length]
    return own, others + (rest[1:] if rest[:1] == ["--"] else rest)


def _describe(name):
    record = state.load(name)
    if record is None:
        return {"name": name, "state": "broken", "nodes": []}
    nodes = [{"name": holder["label"], "pid": holder["pid"],
              "addresses": [network.address(record["subnet"], rail, number) for rail in range(record["rails"])]}
             for number, holder in enumerate(record["nodes"], 1)]
    return {"name": name, "state": "up" if state.is_running(record) else "broken", "rails": record["rails"],
            "mtu": record["mtu"], "rate": record["rate"], "nodes": nodes}


def _list(as_json):
    clusters = [_describe(name) for name in state.names()]
    if as_json:
        print(json.dumps(clusters, indent=1))
        return 0
    if not clusters:
        print("no clusters")
    for entry in clusters:
        print(f"{entry['name']}: {entry['state']}, {len(entry['nodes'])} nodes, {entry.get('rails', 0)} rails, "
              f"mtu {entry.get('mtu', '-')}, rate {entry.get('rate') or 'unlimited'}")
        for node in entry["nodes"]:
            print(f"  {node['name']:<8} {' '.join(node['addresses'])}")
    return 0


def _need_root():
    if os.geteuid() != 0:
        raise VclusterError("needs root, as it makes and enters namespaces of the kernel: try sudo")


# command -> (programs it runs, packages that contain them)
_NEEDS = {"up": (("ip", "tc", "unshare"), "nodes"), "faults": (("tc",), "nodes"), "mpirun": (("mpirun",), "demo")}


def _install_missing(options):
    programs, purpose = _NEEDS.get(options.command, ((), ""))
    if options.command == "mpirun" and options.mpi:
        return
    if any(shutil.which(program) is None for program in programs):
        build.packages(purpose)


def _exec(record, options):
    in_switch = options.node == "switch"
    holder = record["switch"] if in_switch else state.node(record, options.node)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    words = words or [os.environ.get("SHELL", "/bin/sh")]
    environment = state.environment(record, holder)
    namespaces.enter(holder, ("net",) if in_switch else processes.NAMESPACES)
    try:
        os.execvpe(words[0], words, environment)
    except FileNotFoundError:
        print(f"vcluster: {words[0]}: command not found", file=sys.stderr)
        return 127
    except OSError as error:
        print(f"vcluster: {words[0]}: {error.strerror}", file=sys.stderr)
        return 126


def _mpirun(record, options, words):
    if not words:
        raise VclusterError("mpirun: no program given")
    if options.slots is not None and options.slots < 1:
        raise VclusterError(f"--slots {options.slots}: at least 1")
    chosen = [state.node(record, text) for text in options.on.split(",")] if options.on else None
    return mpi_job.run(record, launchers.find(options.mpi), words, options.slots, chosen, options.key, options.coll)


def _refuse_inside():
    for name in state.names():
        record = state.load(name)
        for holder in record["nodes"] if record else []:
            if processes.namespace_id("self", "net") == processes.namespace_id(holder["pid"], "net"):
                raise VclusterError(f"this is {holder['label']} of cluster '{name}' already: run it outside of the nodes")


def _up(options):
    with_page = options.agents and not options.no_page
    if options.agents:
        agents.ensure()
    missing = page.ensure() if with_page else ""
    if missing:
        print(f"vcluster: the cluster gets no web page: {missing}", file=sys.stderr)
        with_page = False
    if options.slurm or options.slurm_rest:
        slurm.ensure(options.slurm_rest)
    if options.gridengine:
        gridengine.ensure()
    record = cluster.up(options.name, options.nodes, options.rails, options.mtu, options.rate)
    print(f"cluster '{record['name']}': node1 to node{record['size']}, "
          f"{network.address(record['subnet'], 0, 1)} and following")
    if options.agents:
        agents.start_all(record)
        agents_cli.show(record)
    password = accounts.make(record) if with_page else ""
    if options.slurm or options.slurm_rest:
        slurm.start(record, options.slurm_rest)
        print("Slurm: every node is idle; vcluster exec node1 sinfo")
    if options.gridengine:
        gridengine.start(record)
        print("Grid Engine: every node is there; vcluster exec node1 qstat -f")
    if with_page:
        page.start(record, slurm.page_options(record) if options.slurm_rest else ())
        print(f"{page.describe(record)}\nlog in as {', '.join(accounts.ACCOUNTS)}: password {password}")
    return 0


def _dispatch(options, words):
    if options.command == "list":
        return _list(options.json)
    _need_root()
    if options.command == "agent":
        return mpi_job.agent(state.running(options.name), options.words[1:] if options.words[:1] == ["--"] else options.words)
    _refuse_inside()
    _install_missing(options)
    if options.command == "up":
        return _up(options)
    if options.command == "down":
        cluster.down(options.name)
        return 0
    if options.command == "faults":
        return faults_cli.run(options.name, options)
    record = state.running(options.name)
    if options.command == "agents":
        return agents_cli.run(record, options)
    return _exec(record, options) if options.command == "exec" else _mpirun(record, options, words)


def main(arguments):
    words = []
    if arguments[:1] == ["mpirun"]:
        own, words = _split_mpirun(arguments[1:])
        arguments = ["mpirun", *own]
    options = _parser().parse_args(arguments)
    try:
        status = _dispatch(options, words)
        sys.stdout.flush()
        return status
    except (VclusterError, build.BuildError, job_key.JobKeyError) as error:
        print(f"vcluster: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        print("vcluster: interrupted, nothing is left behind", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"vcluster: {system_errors.in_words(error)}", file=sys.stderr)
        return 1
