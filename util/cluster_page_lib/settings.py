"""Options of cluster-page, from the command line and from files of options."""
import argparse
import os

from cluster_lib import build
from clusterd_lib import settings as agent_settings
from clusterd_lib.errors import AgentError

_EPILOG = """\
examples:
  cluster-page                                  https://THIS-NODE:8443, users log in as on this system
  cluster-page --submit '*' --look @staff       every account may run jobs; members of staff may look
  cluster-page @/etc/cluster-page.conf          options from a file, one per line

The agent of this node (clusterd) is needed. Virtual nodes with a page: vcluster up -n 4 --agents"""


def _parser():
    parser = agent_settings.Parser(
        prog="cluster-page", description="The cluster in a browser: nodes, links, jobs.", epilog=_EPILOG,
        fromfile_prefix_chars="@", formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("--address", metavar="ADDRESS", default="0.0.0.0", help="address to listen on (default: every interface)")
    add("--port", metavar="N", type=int, default=8443, help="TCP port (default: %(default)s)")
    add("--listen-fd", metavar="N", type=int, help="a listening socket of the calling process, instead of --address and --port")
    add("--state", metavar="DIRECTORY", default="/var/lib/cluster-page",
        help="directory for the certificate and the jobs (default: %(default)s)")
    add("--certificate", metavar="FILE", help="certificate and chain, PEM (default: one made at the first start)")
    add("--certificate-key", metavar="FILE", help="its private key")
    add("--jobs", choices=("auto", "slurm", "slurmrest", "gridengine", "mpirun", "none"), default="auto",
        help="what runs jobs (default: Slurm where sinfo answers, Grid Engine where qhost does, otherwise mpirun)")
    add("--slurmrestd", metavar="SOCKET", default="/run/slurmrestd.socket",
        help="with --jobs slurmrest: the Unix socket of slurmrestd (default: %(default)s)")
    add("--slurm-jwt-key", metavar="FILE", default="/var/spool/slurmctld/jwt_hs256.key",
        help="and the key with which slurmctld checks tokens (default: %(default)s)")
    add("--provider", metavar="DIRECTORY", default="", help=argparse.SUPPRESS)
    agent_settings.add_roles(add)
    return parser


def read(arguments):
    settings = _parser().parse_args(arguments)
    if bool(settings.certificate) != bool(settings.certificate_key):
        raise AgentError("--certificate and --certificate-key belong together")
    if not 0 < settings.port < 65536:
        raise AgentError(f"--port {settings.port}: 1 to 65535")
    settings.state = os.path.abspath(settings.state)
    return settings
