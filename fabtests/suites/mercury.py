#!/usr/bin/env python3
"""Mercury's own tests of RPC, bulk transfers and killed servers over libfabric, in one virtual node and between two.

    mercury.py DIRECTORY --plugin DIR [--peer PROVIDER]... [--source URL] [--kwsys URL]

Mercury, at the revision that docs/suites.md speaks of, is fetched into DIRECTORY and built there; what that needs is installed
first. URL may be a directory with a git repository. Its na_ofi knows providers by a table of names, so a row for `cluster` is
added to that, and wherever it distinguishes them ours goes the way of `tcp`. Exit status 0: what fails over `cluster` is what
docs/suites.md explains; 1: something else does; 2: usage.
"""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import virtual_nodes  # noqa: E402
from sources import check_out, run  # noqa: E402

_SOURCE = ("https://github.com/mercury-hpc/mercury.git", "f62eeb5273f8cd47b9a0ca2e0bfd7c0e9518f0b8")
# A submodule of Mercury, for the program that starts server and client.
_KWSYS = ("https://github.com/mercury-hpc/kwsys.git", "7cc383a10b6b9f7f0e3567cfadc9a196036c84c1")
# Its columns: name, second name, format of addresses asked for and given, progress, protocol (FI_PROV_SPECIFIC and a number),
# further capabilities, what else it can do. A protocol of one provider is a negative number, which is refused as if it were none.
_ROW = ('    X(NA_OFI_PROV_CLUSTER, "cluster", "", FI_SOCKADDR_IN, FI_SOCKADDR_IN, FI_PROGRESS_MANUAL, (int) (FI_PROV_SPECIFIC | 0xc5), \\\n'
        "      FI_SOURCE | FI_SOURCE_ERR | FI_MULTI_RECV, NA_OFI_DOM_IFACE | NA_OFI_WAIT_FD) \\\n")
_LAST_ROW = "    X(NA_OFI_PROV_MAX,"
_LIKE = "case NA_OFI_PROV_TCP:"  # where the code distinguishes providers, ours goes the way of this one
_REFUSES_NEGATIVE, _REFUSES_NONE = "prov_ep_proto[prov_type] <= FI_PROTO_UNSPEC", "prov_ep_proto[prov_type] == FI_PROTO_UNSPEC"
# test, to the caller itself; waiting asleep and busy. `kill` is for a server of its own, and none of Mercury's tests of sockets.
_TESTS = {1: [("rpc", False), ("rpc", True), ("bulk", False), ("bulk", True), ("kill", False)],
          2: [("rpc", False), ("bulk", False), ("kill", False)]}
_SETUP = str(HERE.parent.parent / "util" / "setup")
_EXPLAINED = {(1, "kill"), (1, "kill busy")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--plugin", required=True, metavar="DIR", help="where libcluster-fi.so is")
    parser.add_argument("--peer", action="append", default=[], help="another provider, such as tcp (may be repeated)")
    parser.add_argument("--source", default=_SOURCE[0], metavar="URL", help="(default: %(default)s)")
    parser.add_argument("--kwsys", default=_KWSYS[0], metavar="URL", help="(default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one test (default: %(default)s)")
    return parser.parse_args()


def add_row(table):
    text = table.read_text()
    if "NA_OFI_PROV_CLUSTER" not in text:
        for needed in (_LAST_ROW, _REFUSES_NEGATIVE):
            if text.count(needed) != 1:
                sys.exit(f"mercury: {table} has another form than expected: {text.count(needed)} times '{needed}'")
        text = text.replace(_LAST_ROW, _ROW + _LAST_ROW).replace(_REFUSES_NEGATIVE, _REFUSES_NONE)
        table.write_text(text.replace(_LIKE, _LIKE + " case NA_OFI_PROV_CLUSTER:"))


def build(options):
    """Where the programs are."""
    source, target = options.directory.resolve() / "source", options.directory.resolve() / "build"
    source.parent.mkdir(parents=True, exist_ok=True)
    check_out(options.source, _SOURCE[1], source)
    check_out(options.kwsys, _KWSYS[1], source / "Testing" / "driver" / "kwsys")
    add_row(source / "src" / "na" / "na_ofi.c")
    run("cmake", "-S", source, "-B", target, "-G", "Ninja", "-DBUILD_TESTING=ON", "-DNA_USE_OFI=ON", "-DNA_USE_SM=OFF")
    run("cmake", "--build", target, "--target", "mercury_test_driver", "hg_test_server",
        *(f"hg_test_{name}" for name in ("rpc", "bulk", "kill")))
    return target / "bin"


class Runner:
    def __init__(self, options, programs):
        self.options, self.programs = options, programs
        self.cluster = virtual_nodes.make(2, suffix="-mercury")

    def command(self, node, *words):
        """As the driver needs it: it does not look for programs in PATH."""
        program, *rest = self.cluster.command(node, *words)
        return [shutil.which(program), *rest]

    def passes(self, provider, nodes, test, to_itself, busy):
        options = ["--comm", "ofi", "--protocol", provider, *(["--busy"] if busy else []), *(["--self_send"] if to_itself else [])]
        client = self.command(1, self.programs / f"hg_test_{test}", *options)
        if not to_itself:
            server = self.command(nodes, self.programs / "hg_test_server", *options)
            allowed = ["--allow-server-errors"] if test == "kill" else []
            client = [self.programs / "mercury_test_driver", *allowed, "--server", *server, "--client", *client, "--serial"]
        # Without its errors, of which the driver takes any line for a failure: one says that there are no huge pages.
        environment = {**virtual_nodes.of_provider(self.options.plugin, FI_PROVIDER=provider), "HG_LOG_LEVEL": "none"}
        with tempfile.TemporaryDirectory(prefix="mercury-") as meeting:  # where the server leaves its address
            words = [word.replace(f"--wdns={pathlib.Path.cwd()}", f"--wdns={meeting}") for word in map(str, client)]
            child = virtual_nodes.start(words, environment, cwd=meeting, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                        start_new_session=True)
            try:
                said, _ = child.communicate(timeout=self.options.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)  # the driver, its server and its client
                said, child.returncode = child.communicate()[0] + f"\nended after {self.options.timeout:g} s", 124
        if child.returncode != 0:
            print("\n".join("      " + line[:150] for line in said.splitlines() if line.strip())[-1000:])
        return child.returncode == 0

    def row(self, provider, nodes):
        """A line of the table, and what failed."""
        counts, failed = {"passed": 0, "failed": 0, "not offered": 0}, []
        for test, to_itself in _TESTS[nodes]:
            for busy in (False, True):
                name = test + (" to itself" if to_itself else "") + (" busy" if busy else "")
                if test == "kill" and provider == "sockets":
                    counts["not offered"] += 1
                    continue
                print(f"   {provider}, {nodes} node(s): {name}", flush=True)
                passed = self.passes(provider, nodes, test, to_itself, busy)
                counts["passed" if passed else "failed"] += 1
                failed += [] if passed else [name]
        return [provider, nodes, sum(counts.values()), *counts.values(), ", ".join(failed)], failed


def main():
    options = arguments()
    run(_SETUP, "--for", "suites")
    virtual_nodes.require("git", "cmake", "ninja", "c++")
    runner = Runner(options, build(options))
    rows, unexplained = [], []
    for provider in ["cluster", *options.peer]:
        for nodes in _TESTS:
            row, failed = runner.row(provider, nodes)
            rows.append(row)
            unexplained += [f"{name} ({nodes} node(s))" for name in failed if provider == "cluster" and (nodes, name) not in _EXPLAINED]
    print("| over | nodes | programs | passed | failed | not offered | which failed |\n|---|---:|---:|---:|---:|---:|---|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print("mercury: " + (f"failed over cluster: {', '.join(unexplained)}" if unexplained else "nothing failed over cluster that is not explained"))
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
