#!/usr/bin/env python3
"""Mercury's own tests of RPC, bulk transfers and cancelled calls over `cluster`, through its plugin na_ofi, beside other providers.

    mercury.py PREFIX --plugin DIR [--peer tcp] [--peer sockets] [--only PROGRAM]... [--timeout SECONDS]

PREFIX holds hg_test_server and its clients in bin/, and Mercury's libraries in lib/ (docs/suites.md says which and how they are
built). Server and client run in one virtual node and in two, with and without busy waiting; in one node, a client also calls
itself. A program passes if client and server both exit with 0 and report no failure. Exit status 0: no program failed over
`cluster` but those of KNOWN and those that fail over every peer as well; 1: one did; 2: usage.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import virtual_nodes  # noqa: E402

# Name of the row -> client and options of both sides.
PROGRAMS = {f"{client}{' busy' if busy else ''}{' self' if itself else ''}": (client, (*(["--busy"] if busy else []), *(["--self_send"] if itself else [])))
            for client in ("rpc", "bulk", "kill") for itself in (False, True) for busy in (False, True) if not (itself and client == "kill")}
# Over these, Mercury's own list of tests leaves a program out as well.
NOT_OFFERED = {("sockets", "kill")}
# (client, nodes) -> why it fails over `cluster` and nowhere else; docs/suites.md says more.
KNOWN = {("kill", 1): "Mercury waits for ever if a call has failed before it is cancelled"}
READY = "# Waiting for client"
FAILURE = ("FAILED", "core dumped", "Segmentation fault")
STOP_SECONDS = 10
LINES_SHOWN = 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("--plugin", required=True, metavar="DIR", help="where libcluster-fi.so is")
    parser.add_argument("--peer", action="append", default=[], help="another provider, such as tcp (may be repeated)")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", metavar="PROGRAM", action="append", choices=PROGRAMS, help="this program (may be repeated)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one program (default: %(default)s)")
    options = parser.parse_args()
    options.prefix = options.prefix.resolve()
    needed = ["hg_test_server", *sorted({f"hg_test_{client}" for client, _ in PROGRAMS.values()})]
    missing = [name for name in needed if not os.access(options.prefix / "bin" / name, os.X_OK)]
    if missing:
        parser.error(f"not in {options.prefix / 'bin'}: {', '.join(missing)}")
    return options


class Side:
    """Server or client: a process in a node, whose output goes to a file."""

    def __init__(self, runner, node, name, words, provider):
        environment = virtual_nodes.of_provider(os.path.abspath(runner.options.plugin), FI_PROVIDER=provider)
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(runner.options.prefix / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        command = runner.cluster.command(node, str(runner.options.prefix / "bin" / f"hg_test_{name}"), *words)
        self._process = virtual_nodes.start(command, environment, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT)

    def said(self):
        self._log.seek(0)
        return self._log.read()

    def await_ready(self, seconds):
        end = time.monotonic() + seconds
        while READY not in self.said():
            if self._process.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def end(self, seconds):
        """Why it is no success; empty if it is one."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            status = "killed"
        if status != 0:
            return str(status)
        return next((line for line in self.said().splitlines() if any(word in line for word in FAILURE)), "")


class Runner:
    def __init__(self, options):
        self.options = options
        self.cluster = virtual_nodes.make(max(options.nodes), suffix="-mercury")

    def run(self, name, provider, nodes):
        """What failed, and lines of it; nothing if all is well."""
        client, more = PROGRAMS[name]
        with tempfile.TemporaryDirectory() as directory:
            words = ["--comm", "ofi", "--protocol", provider, "--hostfile", os.path.join(directory, "addresses"), *more]
            sides = {}
            if "--self_send" not in more:
                sides["server"] = Side(self, 1, "server", words, provider)
                if not sides["server"].await_ready(self.options.timeout):
                    sides["server"].end(0)
                    return "the server does not start", sides["server"].said()
            sides["client"] = Side(self, nodes, client, words, provider)
            limits = {"client": self.options.timeout, "server": STOP_SECONDS}
            found = {side: sides[side].end(limits[side]) for side in ("client", "server") if side in sides}
            what = ", ".join(f"{side}: {reason}" for side, reason in found.items() if reason)
            return what, "".join(sides[side].said() for side in found if found[side])


def judged(runner, names, provider, nodes):
    """The programs that passed, failed and are not offered."""
    verdicts = {"passed": [], "failed": [], "not offered": []}
    for name in names:
        if (provider, PROGRAMS[name][0]) in NOT_OFFERED:
            verdicts["not offered"].append(name)
            continue
        what, said = runner.run(name, provider, nodes)
        verdicts["failed" if what else "passed"].append(name)
        if what:
            print(f"   FAILED: {name} over {provider}, {nodes} node(s): {what}", flush=True)
            for line in [line for line in said.splitlines() if line.strip()][-LINES_SHOWN:]:
                print(f"      {line[:150]}", flush=True)
    return verdicts


def main():
    options = arguments()
    virtual_nodes.require()
    runner, rows, blame, known = Runner(options), [], [], []
    for nodes in options.nodes:
        names = [name for name in options.only or PROGRAMS if nodes == 1 or not name.endswith(" self")]
        failed = {}
        for provider in ("cluster", *options.peer):
            verdicts = judged(runner, names, provider, nodes)
            failed[provider] = verdicts["failed"]
            rows.append([str(nodes), provider, str(len(names)), *(str(len(found)) for found in verdicts.values()), ", ".join(verdicts["failed"])])
        for name in failed["cluster"]:
            if (PROGRAMS[name][0], nodes) in KNOWN:
                known.append(name)
            elif not options.peer or any(name not in failed[peer] for peer in options.peer):
                blame.append(f"{name} ({nodes} node(s))")
    print("\n| nodes | over | programs | passed | failed | not offered | which failed |\n|---:|---|---:|---:|---:|---:|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    for reason in sorted({reason for (client, _), reason in KNOWN.items() if any(PROGRAMS[name][0] == client for name in known)}):
        print(f"known: {', '.join(known)}: {reason}")
    print("mercury: " + (f"failed over cluster: {', '.join(blame)}" if blame else "nothing unknown failed over cluster alone"))
    return 1 if blame else 0


if __name__ == "__main__":
    sys.exit(main())
