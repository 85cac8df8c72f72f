#!/usr/bin/env python3
"""Open MPI's own tests of processes that fail (ULFM: revoke, shrink, agree) over `cluster` and TCP, in one virtual node and two.

    ulfm.py DIRECTORY --plugin DIR [--cache DIR] [--timeout SECONDS]

DIRECTORY holds the tests, compiled against Open MPI 5 of PyPI (docs/suites.md says which and how). Open MPI supports failures in
pml ob1 only, so `cluster` is reached by btl ofi with its two-sided mode. Two mistakes of Open MPI itself are kept out on every
path: dup_together.c is preloaded, and coll han is off, because its barrier hides that a communicator was revoked. A test passes
if its survivors say so in time, and no process crashed. Whether mpirun ends by itself is another column, since over TCP it often
does not after a process has died. Exit status 0: every test that passes over TCP on as many nodes passes over `cluster`; 1: one
does not; 2: usage.
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mpi")]
import virtual_nodes  # noqa: E402
from mpi_libraries import LIBRARIES  # noqa: E402

# The last survivor's message for each.
_TESTS = {"err_any": "TEST PASSED", "err_insulation": "found dead", "err_returns": "TEST PASSED",
          "getack": "TEST PASSED", "revshrink": "COMPLIANT @ repeat 99", "revshrinkkill": "COMPLIANT", "shrink": "COMPLIANT"}
_CRASH = "Signal: Segmentation fault"  # Open MPI's line; the tests end their victims by other signals
_PATHS = {"cluster": ("ofi,self", "--mca", "btl_ofi_mode", "1", "--mca", "btl_ofi_provider_include", "cluster"), "tcp": ("tcp,self",)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--plugin", required=True, metavar="DIR", help="where libcluster-fi.so is")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("build/cores"), help="for Open MPI (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=20, help="seconds for one test (default: %(default)s)")
    options = parser.parse_args()
    missing = [test for test in _TESTS if not os.access(options.directory / test, os.X_OK)]
    if missing:
        parser.error(f"not in {options.directory}: {', '.join(missing)}")
    return options


def _compile(prefix, cache):
    """The library that is preloaded, if it is older than its source; returns its path."""
    source, library = HERE / "dup_together.c", cache / "programs" / "dup_together.openmpi5.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([prefix / "bin" / "mpicc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


class Runner:
    def __init__(self, options, prefix):
        self.options, self.prefix, self.programs = options, prefix, options.directory.resolve()
        self.preloaded = _compile(prefix, options.cache.resolve())
        self.cluster = virtual_nodes.make(2, suffix="-ulfm")

    def run(self, test, path, nodes):
        """Whether it passed, and whether mpirun ended."""
        words = self.cluster.mpirun("--on", "node1,node2" if nodes == 2 else "node1", "--mpi", str(self.prefix), "-np", "4", "--with-ft",
                                    "ulfm", "-x", f"LD_PRELOAD={self.preloaded}", "--mca", "coll", "^han", "--mca", "pml", "ob1",
                                    "--mca", "btl", *_PATHS[path], str(self.programs / test))
        environment = {**virtual_nodes.of_provider(os.path.abspath(self.options.plugin)), "LD_LIBRARY_PATH": f"{self.prefix}/lib"}
        child = virtual_nodes.start(words, environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, errors="replace", start_new_session=True)
        try:
            said, _ = child.communicate(timeout=self.options.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGTERM)  # mpirun ends its ranks
            said = child.communicate()[0] + f"\nended after {self.options.timeout:g} s"
            child.returncode = 124
        passed = _TESTS[test] in said and _CRASH not in said
        if not passed:
            print("\n".join("      " + line[:150] for line in said.splitlines() if line.strip())[-800:])
        return passed, child.returncode != 124


def main():
    options = arguments()
    virtual_nodes.require()
    prefix = LIBRARIES["openmpi5"].prefix(options.cache).resolve()
    runner = Runner(options, prefix)
    rows, worse = [], []
    for nodes in (1, 2):
        passed, ended = {}, {}
        for path in _PATHS:
            for test in _TESTS:
                print(f"   {path}, {nodes} node(s): {test}", flush=True)
                passed[path, test], ended[path, test] = runner.run(test, path, nodes)
            failed = [test for test in _TESTS if not passed[path, test]]
            rows.append([path, nodes, len(_TESTS), len(_TESTS) - len(failed), len(failed), ", ".join(failed),
                         sum(ended[path, test] for test in _TESTS)])
        worse += [f"{test} ({nodes} node(s))" for test in _TESTS if passed["tcp", test] and not passed["cluster", test]]
    print("| over | nodes | programs | passed | failed | which failed | mpirun ended |\n|---|---:|---:|---:|---:|---|---:|")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print("ulfm: " + (f"failed over cluster alone: {', '.join(worse)}" if worse else "nothing failed over cluster alone"))
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
