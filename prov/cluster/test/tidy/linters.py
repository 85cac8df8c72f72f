#!/usr/bin/env python3
"""Runs one linter over the tree: `linters.py ruff|shellcheck|clang-tidy|format ROOT [--build BUILD] [--all]`.

clang-tidy looks here at some files of different kinds, which takes seconds; with --all, as
the target clang-tidy of the build calls it, at all.
Exit status 77 where the linter is not installed (`util/setup --for check` brings it).
"""
import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from source import SKIPPED_DIRECTORIES

SKIPPED = 77
# One of each kind: bytes from outside, peers, the network. All three take some 20 s of a processor.
SAMPLE = ("wire/admit.cc", "transport/peer_reach.cc", "network/session_acceptor.cc")
SOURCES = "prov/cluster/src/"


def files(root):
    for directory, names, found in os.walk(root):
        names[:] = sorted(name for name in names if name not in SKIPPED_DIRECTORIES)
        yield from (os.path.join(directory, name) for name in sorted(found))


def interpreter(path):
    """The first line of a script, or nothing."""
    with open(path, "rb") as stream:
        first = stream.readline(80)
    return first.decode(errors="replace") if first.startswith(b"#!") else ""


def python(root):
    return [path for path in files(root) if path.endswith(".py") or "python" in interpreter(path)]


def shell(root):
    return [path for path in files(root)
            if path.endswith((".sh", ".bash")) or interpreter(path).rstrip().endswith(("/sh", "/bash", " sh", " bash"))]


def commands(options):
    """The linter and its arguments; the first word of each is a program."""
    if options.linter != "clang-tidy":
        return [command(options)]
    # A file may be compiled as part of another one (CLUSTER_UNITY): clang-tidy takes the command of the nearest.
    wanted = sorted(os.path.relpath(path, os.path.join(options.root, SOURCES)) for path in files(os.path.join(options.root, SOURCES))
                    if path.endswith(".cc") and "_arm64" not in path) if options.all else SAMPLE
    return [["clang-tidy", "-quiet", "-p", options.build, "-extra-arg=-Wno-unknown-warning-option", SOURCES + name] for name in wanted]


def command(options):
    root = options.root
    if options.linter == "ruff":
        own = os.path.join(root, "build", "lint", "bin", "ruff")
        return [own if os.path.exists(own) else "ruff", "check", "--no-cache", "--output-format", "concise", *python(root)]
    if options.linter == "shellcheck":
        return ["shellcheck", "--format", "gcc", *shell(root)]
    return [os.path.join(root, "util", "format"), "--check"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("linter", choices=("ruff", "shellcheck", "clang-tidy", "format"))
    parser.add_argument("root", help="top of the tree")
    parser.add_argument("--build", help="of which clang-tidy takes the commands")
    parser.add_argument("--all", action="store_true", help="clang-tidy looks at every file of the provider")
    options = parser.parse_args()
    calls = commands(options)
    if shutil.which(calls[0][0]) is None:
        print(f"{calls[0][0]} is not installed: util/setup --for check")
        return SKIPPED

    def called(words):
        return subprocess.run(words, cwd=options.root, capture_output=True, text=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(called, calls))
    for result in results:
        if result.returncode:
            print(result.stdout, result.stderr[-2000:], sep="\n")
    codes = {result.returncode for result in results}
    return SKIPPED if codes == {SKIPPED} else int(codes != {0})


if __name__ == "__main__":
    sys.exit(main())
