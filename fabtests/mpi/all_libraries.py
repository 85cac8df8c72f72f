"""The long form: every library over every path, with every program; one line for each, and a table at the end.

    all_libraries.py --provider DIRECTORY [--library NAME]... [--only WORD]... [--ranks N]

Needs minutes to an hour, depending on the machine. Over TCP it runs the applications and the programs of apps/ as
well, to compare their results and times. The applications come from Debian (util/setup --for apps), where they are built
for Open MPI 4.1; the Intel MPI Benchmarks come with Intel MPI.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import applications  # noqa: E402
import run_mpi  # noqa: E402
from mpi_libraries import LIBRARIES  # noqa: E402

_PATHS = {"packet": (2, "packet"), "udp": (2, "udp"), "inside": (1, "")}
_WORK = ("checks", "apps", "benchmarks", "applications")
_IMB = {"IMB-MPI1": ["-npmin", "4", "-iter", "20", "-msglog", "18", "-time", "2"],
        "IMB-NBC": ["-npmin", "4", "-iter", "10", "-msglog", "16", "-time", "2"],
        "IMB-RMA": ["-npmin", "4", "-iter", "20", "-msglog", "16", "-time", "2"],
        "IMB-P2P": ["-iter", "20", "-msglog", "18", "-time", "2"]}  # IMB-MT wants libiomp5, which does not come with it


class Matrix:
    def __init__(self, options):
        self.options, self.rows, self.binaries = options, [], str(options.binaries.resolve())

    def wanted(self, word, kinds):
        """True if none of its kind was asked for, or it was."""
        asked = [only for only in self.options.only if only in kinds]
        return not asked or word in asked

    def _program(self, library, name):
        return name if LIBRARIES[library].wheel else os.path.join(self.binaries, name)

    def run(self, library, path, program, expect, extra=(), script="run_mpi.py", ranks=0):
        """Runs one cell; returns what it printed, or None when it failed."""
        nodes, link = _PATHS.get(path, (2, ""))
        words = [sys.executable, "-B", str(HERE / script), "--library", library, "--cache", str(self.options.cache),
                 "--provider", str(self.options.provider), "--nodes", str(nodes), "--ranks",
                 str(ranks or self.options.ranks), "--seconds", "900", *extra]
        words += ["--link", link] if link else []
        words += ["--path", "tcp"] if path == "tcp" else []
        words += ["--expect", expect] if expect else []
        result = subprocess.run([*words, "--", *program], capture_output=True, text=True, check=False)
        passed = result.returncode in (0, run_mpi.virtual_nodes.SKIPPED)
        name = " ".join([os.path.basename(program[0]), *program[1:2]])
        self.rows.append((library, path, name, passed))
        verdict = "FAIL" if not passed else "skip" if result.returncode else "ok  "
        print(f"{verdict} {library:9} {path:7} {name}", flush=True)
        if not passed:
            print(result.stdout[-3000:] + result.stderr[-2000:])
        return result.stdout if passed else None

    def checks(self, library, path):
        program = self._program
        self.run(library, path, [program(library, "mpi_check"), "--timeout", "800"], "PASS mpi_check")
        # Windows for all threads at once: osc pt2pt of Open MPI 4.1 has none.
        windows = [] if library == "openmpi4" else ["windows"]
        self.run(library, path, [program(library, "mpi_threads"), "16", "20", *windows], "PASS mpi_threads")
        script = "dynamic_processes.py" if library == "openmpi5" else "run_mpi.py"  # whose launcher fails by itself
        # Two nodes have slots for as many children; with more, hydra would start them all beside their parents.
        slots = str(self.options.ranks * (2 if path == "inside" else 1))
        self.run(library, path, [program(library, "mpi_dynamic"), "spawn"], "PASS", ["--slots", slots], script)
        self.run(library, path, [program(library, "mpi_dynamic"), "connect"], "PASS", script=script)
        self.run(library, path, [program(library, "mpi_large"), *windows], "PASS mpi_large", ranks=2)
        if path != "inside":
            self.run(library, path, [program(library, "mpi_termination"), program(library, "mpi_check")], "", script="termination.py")

    def compared_with_tcp(self, library, path, name, arguments):
        """Runs a program of apps/ over both; prints its lines side by side."""
        lines = []
        for way in (path, "tcp"):
            said = self.run(library, way, [self._program(library, name), *arguments], f"PASS {name}", ranks=2)
            lines += re.findall(rf"^{name} .*$", said or "", re.MULTILINE)
        for way, line in zip((path, "tcp"), lines):
            print(f"     {way:7} {line}")

    def benchmarks(self, path):
        for name, arguments in _IMB.items():
            program = os.path.join(str(LIBRARIES["intel"].prefix(self.options.cache).resolve()), "bin", name)
            self.run("intel", path, [program, *arguments], "All processes entering MPI_Finalize")

    def all(self):
        for library in self.options.libraries or sorted(LIBRARIES):
            for path in _PATHS:
                if not self.wanted(path, _PATHS):
                    continue
                if self.wanted("checks", _WORK):
                    self.checks(library, path)
                if self.wanted("apps", _WORK):
                    self.compared_with_tcp(library, path, "gauss", ["400"])
                    self.compared_with_tcp(library, path, "gauss_rows", ["400"])
                    self.compared_with_tcp(library, path, "matmul", ["600", "5"])
                if library == "intel" and self.wanted("benchmarks", _WORK):
                    self.benchmarks(path)
                if library == "openmpi4" and self.wanted("applications", _WORK):
                    applications.compare(self, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--provider", type=Path, required=True, help="directory of libcluster-fi.so")
    parser.add_argument("--binaries", type=Path, default=Path("build/release/fabtests/mpi"),
                        help="directory of the programs built for the system's MPI (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path("build/cores"), help="(default: %(default)s)")
    parser.add_argument("--library", dest="libraries", action="append", choices=sorted(LIBRARIES), help="(default: all)")
    parser.add_argument("--only", action="append", default=[], choices=(*_PATHS, *_WORK))
    parser.add_argument("--ranks", type=int, default=4, help="(default: %(default)s)")
    matrix = Matrix(parser.parse_args())
    run_mpi.virtual_nodes.require()
    matrix.all()
    failed = [row for row in matrix.rows if not row[3]]
    print(f"{len(matrix.rows)} runs, {len(failed)} failed")
    for row in failed:
        print("failed:", *row[:3])
    return 1 if failed or not matrix.rows else 0


if __name__ == "__main__":
    sys.exit(main())
