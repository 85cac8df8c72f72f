#!/usr/bin/env python3
"""oneCCL on processors, over `cluster` and over each peer: every collective of ccl_check, in one virtual node and on two.

    oneccl.py --plugin DIR [--peer PROVIDER]...

oneCCL and what it is linked with come from PyPI, of known versions, once into a cache; ccl_check is compiled here. Exit
status 0: it passed over `cluster` in every place; 1: it did not; 77: nothing could be run; 2: usage.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import pypi_wheels  # noqa: E402
import virtual_nodes  # noqa: E402

PLACES = [(1, 2), (1, 4), (2, 2), (2, 4)]  # nodes, processes
NO_LAUNCHER = {"CCL_ATL_TRANSPORT": "ofi", "CCL_PROCESS_LAUNCHER": "none", "CCL_KVS_IFACE": "eth0", "CCL_WORKER_COUNT": "1"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True, metavar="DIR", help="where libcluster-fi.so is")
    parser.add_argument("--peer", action="append", default=[], help="another provider, such as tcp (may be repeated)")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("build/cores"), help="of what PyPI gave")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one job")
    return parser.parse_args()


def build(cache, directory):
    """(the program, where its libraries are). That of oneCCL asks for a libccl.so.2, of which its wheel has none and it takes
    nothing: an empty one."""
    libraries, headers, runtime = (pypi_wheels.install(name, cache).resolve() for name in ("oneccl", "oneccl-devel", "intel-runtime"))
    program, empty = directory / "ccl_check", directory / "libccl.so.2"
    commands = [["cc", "-shared", "-Wl,-soname,libccl.so.2", "-x", "c", os.devnull, "-o", empty],
                ["c++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-isystem", headers / "include", HERE / "ccl_check.cc", "-o", program,
                 libraries / "lib" / "libccl.so.1", empty, runtime / "lib" / "libintlc.so.5"]]
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise pypi_wheels.Unavailable(f"ccl_check cannot be built: {result.stderr.strip().splitlines()[-1]}")
    return program, f"{directory}:{libraries / 'lib'}:{runtime / 'lib'}"


class Job:
    """The ranks of one job, spread over nodes in blocks."""

    def __init__(self, cluster, program, libraries, provider, options):
        self.cluster, self.program, self.options = cluster, program, options
        self.environment = {**virtual_nodes.of_provider(options.plugin, FI_PROVIDER=provider), **NO_LAUNCHER,
                            "LD_LIBRARY_PATH": libraries}

    def run(self, nodes, processes):
        """None if all ranks passed; otherwise what the first that did not said last."""
        per_node = processes // nodes
        with tempfile.TemporaryDirectory(prefix="oneccl-") as meeting:
            ranks = []
            for rank in range(processes):
                environment = {**self.environment, "CCL_LOCAL_RANK": str(rank % per_node), "CCL_LOCAL_SIZE": str(per_node)}
                words = [self.program, str(rank), str(processes), os.path.join(meeting, "address")]
                command = self.cluster.command(rank // per_node + 1, *map(str, words))
                ranks.append(virtual_nodes.start(command, environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            return self.verdict(ranks)

    def verdict(self, ranks):
        end = time.monotonic() + self.options.timeout
        said = []
        for rank in ranks:
            try:
                said.append(rank.communicate(timeout=max(end - time.monotonic(), 0.1))[0])
            except subprocess.TimeoutExpired:
                for other in ranks:
                    other.kill()
                return f"killed after {self.options.timeout:g} s"
        wrong = [text for rank, text in zip(ranks, said) if rank.returncode != 0 or "PASS ccl_check" not in text]
        return (wrong[0].strip().splitlines() or ["it said nothing"])[-1] if wrong else None


def main():
    options = arguments()
    virtual_nodes.require("cc", "c++")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="oneccl-build-"))
    try:
        program, libraries = build(options.cache, directory)
        cluster = virtual_nodes.make(max(nodes for nodes, _ in PLACES), suffix="-oneccl")
        failed = []
        print("| over | nodes | processes | ccl_check | seconds |\n|---|---:|---:|---|---:|")
        for provider in ["cluster", *options.peer]:
            for nodes, processes in PLACES:
                started = time.monotonic()
                reason = Job(cluster, program, libraries, provider, options).run(nodes, processes)
                print(f"| {provider} | {nodes} | {processes} | {reason or 'passed'} | {time.monotonic() - started:.1f} |", flush=True)
                if reason and provider == "cluster":
                    failed.append(f"{processes} processes on {nodes}")
    except pypi_wheels.Unavailable as reason:
        virtual_nodes.skip(str(reason))
    finally:
        shutil.rmtree(directory)
    print("oneccl: " + (f"failed over cluster: {', '.join(failed)}" if failed else "passed over cluster"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
