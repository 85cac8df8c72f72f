#!/usr/bin/env python3
"""Builds Sandia OpenSHMEM and its test programs from source, for run_suites.py.

    build_openshmem.py DIRECTORY [--source URL] [--tests URL] [--libfabric PREFIX] [--jobs N]

Sources go to DIRECTORY/source, programs stay where they are built below it; the suites are printed as run_suites.py wants
them. Both revisions are those that docs/suites.md speaks of. URL may be a directory with a git repository. Its own PMI is
built in (the launcher is MPICH's hydra), transports other than libfabric's are not, so that inside a node its puts go
through the provider as well. What building needs is installed first (`util/setup --for suites`). What is built stays, and is
not built again.
"""
import argparse
import subprocess
import sys
from pathlib import Path

_SOURCE = ("https://github.com/Sandia-OpenSHMEM/SOS.git", "8649160d8ea5a8be3032d2720d554693756d0c7d")
_TESTS = ("https://github.com/openshmem-org/tests-sos.git", "ca9cb12b13a10eda4b94844ccabdc119f6b48f88")
_SETUP = str(Path(__file__).resolve().parents[2] / "util" / "setup")
SUITES = ("shmemx", "apps", "spec-example", "unit")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--source", default=_SOURCE[0], metavar="URL", help="(default: %(default)s)")
    parser.add_argument("--tests", default=_TESTS[0], metavar="URL", help="(default: %(default)s)")
    parser.add_argument("--libfabric", metavar="PREFIX", help="(default: what pkg-config finds)")
    parser.add_argument("--jobs", type=int, default=2, help="(default: %(default)s)")
    return parser.parse_args()


class Step:
    """Runs commands one after the other; the first that fails ends the program with its last lines."""

    def __init__(self, log):
        self.log = log

    def __call__(self, folder, *command):
        print("+ " + " ".join(command), flush=True)
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(done.stdout)
        if done.returncode != 0:
            sys.exit("\n".join(done.stdout.splitlines()[-20:]) + f"\nbuild_openshmem: {command[0]} failed; all of it: {self.log}")


def check_out(step, url, revision, target):
    if not (target / ".git").exists():
        step(target.parent, "git", "clone", "--quiet", "--no-checkout", url, str(target))
    step(target, "git", "checkout", "--quiet", "--detach", revision)


def build(options, source, tests):
    step = Step(source.parent / "build.log")
    step(source.parent, _SETUP, "--for", "suites")
    check_out(step, options.source, _SOURCE[1], source)
    if tests.is_dir() and not any(tests.iterdir()):
        tests.rmdir()  # where git would put the submodule
    check_out(step, options.tests, _TESTS[1], tests)
    step(source, "./autogen.sh")
    step(source, "./configure", "--with-ofi" + (f"={options.libfabric}" if options.libfabric else ""), "--enable-pmi-simple", "--disable-fortran",
         "--disable-shared", f"--prefix={source.parent / 'installed'}")
    step(source, "make", f"-j{options.jobs}")
    step(source, "make", f"-j{options.jobs}", "check", "TESTS=")


def main():
    options = arguments()
    source = options.directory.resolve() / "source"
    source.parent.mkdir(parents=True, exist_ok=True)
    tests = source / "modules" / "tests-sos"
    finished = source.parent / "built"  # says what, once it is
    what = f"{_SOURCE[1]} {_TESTS[1]} {options.libfabric or ''}\n"
    if not finished.exists() or finished.read_text() != what:
        build(options, source, tests)
        finished.write_text(what)
    print(" ".join(f"openshmem-{name}={tests / 'test' / name}" for name in SUITES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
