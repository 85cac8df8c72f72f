"""Options of clusterd, from the command line and from files of options."""
import argparse
import ipaddress
import os
import socket

from cluster_lib import build

from .errors import AgentError
from .protocol.wire import NAME_BYTES_MAX, is_name

_EPILOG = """\
examples:
  clusterd                                    finds the others by multicast
  clusterd --key-file /etc/clusterd.key       the same, signed: only nodes with this key belong to the cluster
  clusterd --group none --peers node1,node2   without multicast
  clusterd @/etc/clusterd.conf                options from a file, one per line

Nothing in the provider needs an agent. What it knows, cluster-status shows."""


class Parser(argparse.ArgumentParser):
    """Errors in one line; in files of options # begins a comment, and a line has an option and its value."""

    def error(self, message):
        self.exit(2, f'{self.prog}: {message} (see "{self.prog} --help")\n')

    def convert_arg_line_to_args(self, arg_line):
        line = arg_line.partition("#")[0].strip()
        if not line:
            return []
        option, _, value = line.partition("=" if "=" in line else " ")
        option = option.strip() if option.startswith("-") else "--" + option.strip()
        return [option, value.strip()] if value.strip() else [option]


def words_of(text):
    return [word for word in text.replace(",", " ").split() if word]


def add_roles(add):
    """The options that tell the agent and the page which user has which role."""
    add("--operate", metavar="LIST", type=words_of, default=["root", "@cluster-operate"],
        help="users and @groups that may drain and isolate (default: root,@cluster-operate)")
    add("--submit", metavar="LIST", type=words_of, default=["@cluster-submit"],
        help="users and @groups that may run jobs, too (default: @cluster-submit)")
    add("--look", metavar="LIST", type=words_of, default=["*"], help="users and @groups that may look (default: *, every account)")


def _parser():
    parser = Parser(prog="clusterd", description="The agent of a node: it knows the other nodes, measures the links to "
                     "them, and tells both to cluster-status.", epilog=_EPILOG, fromfile_prefix_chars="@",
                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--version", action="version", version=f"%(prog)s {build.version()}")
    add("--cluster", metavar="NAME", default="default",
        help="name of the cluster; agents of other clusters are ignored (default: %(default)s)")
    add("--name", metavar="NAME", default=socket.gethostname().partition(".")[0], help="name of this node (default: its host name)")
    add("--interfaces", metavar="LIST", type=words_of, default=[],
        help="interfaces to use as rails, in this order (default: every Ethernet interface with an IPv4 address)")
    add("--port", metavar="N", type=int, default=7947, help="UDP and TCP port, the same on all nodes (default: %(default)s)")
    add("--group", metavar="ADDRESS", default="239.255.79.47",
        help="multicast group by which nodes find each other, or none (default: %(default)s)")
    add("--peers", metavar="LIST", type=words_of, default=[], help="nodes to contact first, by name or address")
    add("--key-file", metavar="FILE", default=os.environ.get("CLUSTERD_KEY_FILE"),
        help="file with the key of the agents, which only its owner may read (default: $CLUSTERD_KEY_FILE; without a key nothing is signed)")
    add("--relay", metavar="FILE", default="",
        help="forward sealed frames between endpoints that do not reach each other, for the jobs whose relay keys are in this file, "
             "which only its owner may read (default: no relay)")
    add("--relay-rate", metavar="MBIT", type=int, default=10_000, help="Mbit/s of the relay (default: %(default)s)")
    add("--hook", metavar="COMMAND", default="", help="runs as COMMAND NODE STATE when the state of a node changes")
    add_roles(add)
    add("--metrics", metavar="LIST", type=words_of, default=[],
        help="networks that may read the metrics for Prometheus, besides the nodes (default: none)")
    add("--cluster-info", metavar="FILE", default="", help=argparse.SUPPRESS)
    return parser


def _resolved(name):
    try:
        return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except OSError as error:
        raise AgentError(f"--peers: {name} has no address") from error


def read(arguments):
    settings = _parser().parse_args(arguments)
    if not is_name(settings.name):
        raise AgentError(f"--name: use 1 to {NAME_BYTES_MAX} ASCII letters and digits, and . _ - between them")
    if settings.key_file is None and os.environ.get("FI_CLUSTER_KEY_FILE"):
        raise AgentError("FI_CLUSTER_KEY_FILE is the key of a job, which its user knows; with the key of the agents commands "
                         "run on all nodes: name one by --key-file or CLUSTERD_KEY_FILE, or none by --key-file ''")
    if not 0 < settings.port < 65536:
        raise AgentError(f"--port {settings.port}: 1 to 65535")
    if not 0 < settings.relay_rate <= 10_000_000:
        raise AgentError(f"--relay-rate {settings.relay_rate}: 1 to 10000000")
    settings.group = "" if settings.group == "none" else settings.group
    try:
        if settings.group and not ipaddress.IPv4Address(settings.group).is_multicast:
            raise AgentError(f"--group {settings.group}: no multicast address (224.0.0.0 to 239.255.255.255)")
    except ipaddress.AddressValueError as error:
        raise AgentError(f"--group {settings.group}: no IPv4 address") from error
    for text in settings.metrics:
        try:
            ipaddress.ip_network(text)
        except ValueError as error:
            raise AgentError(f"--metrics {text}: no network such as 10.1.0.0/16") from error
    settings.peers = [_resolved(name) for name in settings.peers]
    return settings
