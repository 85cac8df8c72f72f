"""Runs one MPI program over virtual nodes made for it, and judges what it printed.

    on_nodes.py --nodes 2 --ranks 4 --path cluster --provider DIRECTORY --link udp -- mpi_check --rounds 1

Paths: `cluster` is this provider below Open MPI's pml cm, without any way to fall back to something else; `tcp` and
`vader` are Open MPI's own, to tell a fault of the provider from a fault of the test.
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "vcluster"))
import nodes  # noqa: E402

_PATHS = {
    "cluster": ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster"],
    "tcp": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"],
    "vader": ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2, help="virtual nodes (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=2, help="ranks, spread over all nodes (default: %(default)s)")
    parser.add_argument("--path", choices=sorted(_PATHS), default="cluster", help="(default: %(default)s)")
    parser.add_argument("--provider", default="", help="directory of libcluster-fi.so")
    parser.add_argument("--link", default="", help="packet, udp, or mixed: packet on the first node, udp elsewhere")
    parser.add_argument("--rails", type=int, default=1, help="Ethernet interfaces per node (default: %(default)s)")
    parser.add_argument("--mtu", type=int, default=1500, help="(default: %(default)s)")
    parser.add_argument("--expect", default="", help="regular expression that the output must contain")
    parser.add_argument("--directory", default="", help="working directory of the job")
    parser.add_argument("--seconds", type=int, default=220, help="end the job after so long (default: %(default)s)")
    parser.add_argument("program", nargs="+", help="program and arguments")
    return parser.parse_args()


def environment(options):
    values = dict(os.environ)
    for name in [name for name in values if name.startswith(("FI_", "OMPI_"))]:
        del values[name]
    if options.path == "cluster":
        values.update({"FI_PROVIDER_PATH": options.provider, "FI_PROVIDER": "cluster"})
        if options.link in ("packet", "udp"):
            values["FI_CLUSTER_LINK"] = options.link
    return values


def launch(options, name):
    """Returns the exit status and the output of the job."""
    program = options.program
    if options.link == "mixed":
        choose = 'case $VCLUSTER_NODE in node1) l=packet;; *) l=udp;; esac; FI_CLUSTER_LINK=$l exec "$@"'
        program = ["sh", "-c", choose, "choose", *program]
    result = nodes.vcluster(
        "mpirun", "--name", name, "--mca", "mpi_yield_when_idle", "1", "-np", str(options.ranks), "--timeout", str(options.seconds),
        *_PATHS[options.path], *program, env=environment(options), capture_output=True,
        cwd=options.directory or None)
    return result.returncode, result.stdout + result.stderr


def main():
    options = arguments()
    nodes.prepare()
    name = nodes.make(options.nodes, "--rails", str(options.rails), "--mtu", str(options.mtu))
    status, output = launch(options, name)
    print(output)
    if status != 0:
        print(f"FAIL: exit status {status}")
        return 1
    if options.expect and not re.search(options.expect, output):
        print(f"FAIL: the output does not contain {options.expect}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
