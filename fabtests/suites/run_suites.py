#!/usr/bin/env python3
"""Runs the test programs of libraries that stand on libfabric (OpenSHMEM, GASNet...) and prints one table.

    run_suites.py --plugin DIR --suites NAME=DIRECTORY [--suites NAME=DIRECTORY]...

Each directory holds programs that are built and installed already, at any depth; NAME is what the table calls them.
Every program runs without arguments on 2 and 4 processes, in one virtual node and on two, over `cluster` and over each
--peer. It is given nothing but the provider's name, so the library chooses everything else. The launcher is MPICH's
hydra (PMI 1), from PyPI unless --launcher names one.

A program that exits with 77 says that what it needs is not offered. Exit status 0: no program failed over `cluster`
that did not fail over every peer as well; 1: one did; 77: nothing could be run; 2: usage.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import pypi_wheels  # noqa: E402
import virtual_nodes  # noqa: E402

NOT_OFFERED = 77
KILLED = 124
LINES_SHOWN = 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", action="append", required=True, metavar="NAME=DIRECTORY", type=suite,
                        help="where the programs of a suite are installed (may be repeated)")
    parser.add_argument("--plugin", required=True, metavar="DIR", help="where libcluster-fi.so is")
    parser.add_argument("--peer", action="append", default=[], help="another provider, such as sockets (may be repeated)")
    parser.add_argument("--launcher", metavar="PROGRAM", help="mpiexec.hydra")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("build/cores"), help="of what PyPI gave")
    parser.add_argument("--libraries", metavar="DIR", default="", help="LD_LIBRARY_PATH of the programs")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the programs")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    parser.add_argument("--skip", nargs="+", metavar="PROGRAM", default=[], help="not run: named so in the table")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one program")
    parser.add_argument("--log", metavar="FILE", default=os.devnull, help="what failing programs said, whole")
    options = parser.parse_args()
    options.suites = dict(options.suites)
    return options


def suite(text):
    """(name, directory) of NAME=DIRECTORY."""
    name, _, directory = text.partition("=")
    if not name or not os.path.isdir(directory):
        raise argparse.ArgumentTypeError(f"{text} is not NAME=DIRECTORY with a directory that exists")
    return name, directory


def programs(directory, only):
    """Path of each program by its name: real ones, not the scripts that libtool puts in their place."""
    found = {}
    for folder, _, names in os.walk(os.path.abspath(directory)):
        for name in names:
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and not os.path.islink(path) and "." not in name and (not only or name in only):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        found[name] = path
    return dict(sorted(found.items()))


class Runner:
    def __init__(self, options, log):
        self.options = options
        self.log = log
        self.cluster = virtual_nodes.make(max(options.nodes), suffix="-suites")
        self.launcher = options.launcher
        if not self.launcher:
            try:
                self.launcher = str((pypi_wheels.install("mpich", options.cache) / "bin" / "mpiexec.hydra").resolve())
            except pypi_wheels.Unavailable as reason:
                virtual_nodes.skip(f"no launcher: {reason}")

    def run(self, path, provider, nodes, processes):
        """(exit status, what it said)"""
        environment = virtual_nodes.of_provider(self.options.plugin, FI_PROVIDER=provider)
        environment.update(pair.split("=", 1) for pair in self.options.set)
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [self.options.libraries, os.environ.get("LD_LIBRARY_PATH")]))
        on = ",".join(f"node{number + 1}" for number in range(nodes))
        command = [sys.executable, "-B", virtual_nodes.TOOL, "mpirun", "--name", self.cluster.name, "--mpi", self.launcher,
                   "--on", on, "-np", str(processes), path]
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                                 preexec_fn=virtual_nodes.die_with_parent, cwd=os.path.dirname(path))
        try:
            said, _ = child.communicate(timeout=self.options.timeout)
            return child.returncode, said
        except subprocess.TimeoutExpired:
            child.terminate()  # vcluster ends the job, and what is left of it
            said, _ = child.communicate()
            return KILLED, said

    def suite(self, found, provider, nodes, processes):
        """The programs that passed, failed and are not offered."""
        verdicts = collections.defaultdict(list)
        for name, path in found.items():
            if name in self.options.skip:
                continue
            status, said = self.run(path, provider, nodes, processes)
            verdict = "passed" if status == 0 else "not offered" if status == NOT_OFFERED else "failed"
            verdicts[verdict].append(name)
            if verdict == "failed":
                where = f"{name} over {provider}, {processes} processes on {nodes} node(s)"
                print(f"   FAILED ({'killed' if status == KILLED else status}): {where}", flush=True)
                for line in [line for line in said.splitlines() if line.strip()][:LINES_SHOWN]:
                    print(f"      {line[:150]}", flush=True)
                self.log.write(f"== {where}: {status}\n{said}\n")
                self.log.flush()
        return verdicts


def main():
    options = arguments()
    virtual_nodes.require()
    found = {suite: programs(directory, options.only) for suite, directory in options.suites.items()}
    if not any(found.values()):
        virtual_nodes.skip("no programs in " + ", ".join(options.suites.values()))
    rows, blame = [], []
    with open(options.log, "w", encoding="utf-8") as log:
        runner = Runner(options, log)
        for suite, all_of_it in found.items():
            for nodes in options.nodes:
                for processes in options.processes:
                    failed = {}
                    for provider in ["cluster", *options.peer]:
                        started = time.monotonic()
                        verdicts = runner.suite(all_of_it, provider, nodes, processes)
                        failed[provider] = verdicts["failed"]
                        counts = [str(len(verdicts[verdict])) for verdict in ("passed", "failed", "not offered")]
                        rows.append([suite, str(nodes), str(processes), provider, str(len(all_of_it)), *counts,
                                     ", ".join(verdicts["failed"])])
                        print(f"{' | '.join(rows[-1])} | {time.monotonic() - started:.0f} s", flush=True)
                    ours = [name for name in failed["cluster"]
                            if not options.peer or any(name not in failed[peer] for peer in options.peer)]
                    blame += [f"{name} ({nodes} node(s), {processes} processes)" for name in ours]
    print("\n| suite | nodes | processes | over | programs | passed | failed | not offered | which failed |")
    print("|---|---:|---:|---|---:|---:|---:|---:|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print("suites: " + (f"failed over cluster: {', '.join(blame)}" if blame else "nothing failed over cluster alone"))
    return 1 if blame else 0


if __name__ == "__main__":
    sys.exit(main())
