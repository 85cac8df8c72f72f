"""Options of cluster-why."""
import argparse
import json
import os
import shutil
import sys

from cluster_lib import build
from clusterd_lib.errors import AgentError

from . import answer, collect, here, jobs

_EPILOG = """\
JOB is the job's name (what its launcher or queue calls it: SLURM_JOB_ID, the number of the queue of cluster-page, PMIX_NAMESPACE),
or the number of a process on this node: one of the job, its launcher, or what has started the launcher. Without JOB, the only one.

examples:
  cluster-why 4711                    the job whose mpirun is process 4711
  cluster-why --list                  the jobs that are running
  cluster-why --nodes node1,node2     without agents, by ssh, on these nodes

The command asks the agents (clusterd) if one is running on this node, else all nodes by ssh. On virtual nodes:
vcluster exec node1 cluster-why"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')


def _parser():
    parser = _Parser(prog="cluster-why", description="Why a job makes no progress: names the rank, node or launcher for which the others wait.",
                     epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("job", metavar="JOB", nargs="?", help="name of the job, or number of a process")
    add("--list", action="store_true", help="show the jobs, and explain none")
    add("--all", action="store_true", help="show every wait, not only those that show the cause")
    add("--json", action="store_true", help="causes, ranks and waits, for programs")
    add("--nodes", metavar="NODES", default="", help="ask these nodes by the remote shell, such as node1,node2")
    add("--remote", metavar="COMMAND", default="", help="remote shell in place of ssh, called as COMMAND NODE PROGRAM...")
    add("--cluster-info", metavar="PROGRAM", default="", help="cluster-info to use on all nodes (default: the installed one)")
    add("--here", action="store_true", help="print the report about this node for another cluster-why")
    return parser


def _program(wish):
    own = os.path.join(build.DEFAULT, "bin", "cluster-info") if build.installed else build.path("cluster-info")
    found = shutil.which(wish) if wish else shutil.which(own) or shutil.which("cluster-info")
    if found:
        return found
    if wish:
        raise here.NoReport(f"{wish} is no program")
    raise here.NoReport("cluster-info is not installed" if build.installed else f"cluster-info is {build.advice('cluster-info')}")


def _collect(options):
    """Through the agents, unless the user names nodes or a remote shell."""
    trouble = None
    if not options.nodes and not options.remote:
        try:
            found = collect.by_agents()
            if any(node.processes for node in found.nodes):
                return found
        except AgentError as error:
            trouble = error
    program = _program(options.cluster_info)
    command = [*collect.this_command(), "--here", "--cluster-info", program]
    found = collect.ByShell(options.remote or collect.default_remote(), command, program).collect([name for name in options.nodes.split(",") if name])
    if trouble and any(node.trouble for node in found.nodes):
        print(f"cluster-why: {trouble}", file=sys.stderr)
    return found


def _run(options):
    if options.here:
        print(collect.report_text(_program(options.cluster_info)))
        return 0
    collected = _collect(options)
    if options.list:
        print("\n".join(map(jobs.describe, answer.jobs_of(collected))) or "no jobs")
        return 0
    said = answer.explain(collected, options.job)
    print(json.dumps(said.value(), indent=1) if options.json else "\n".join(said.lines(options.all)))
    return 0


def main(arguments):
    options = _parser().parse_args(arguments)
    try:
        status = _run(options)
        sys.stdout.flush()
        return status
    except (here.NoReport, jobs.NoJob, build.BuildError) as error:
        print(f"cluster-why: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
