#!/usr/bin/env python3
"""Runs one linter over the tree: `linters.py ruff|shellcheck|clang-tidy|format ROOT [--build BUILD]`.

clang-tidy looks here at some files of different kinds, which takes seconds; the target clang-tidy of the build looks at all.
Exit status 77 where the linter is not installed (`util/setup --for check` brings it).
"""
import argparse
import os
import shutil
import subprocess
import sys

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


def command(options):
    """The linter and its arguments; the first word is a program."""
    root = options.root
    if options.linter == "ruff":
        own = os.path.join(root, "build", "lint", "bin", "ruff")
        return [own if os.path.exists(own) else "ruff", "check", "--no-cache", "--output-format", "concise", *python(root)]
    if options.linter == "shellcheck":
        return ["shellcheck", "--format", "gcc", *shell(root)]
    if options.linter == "format":
        return [os.path.join(root, "util", "format"), "--check"]
    return ["run-clang-tidy", "-quiet", "-p", options.build, "-extra-arg=-Wno-unknown-warning-option",
            *(f"{SOURCES}{name}$" for name in SAMPLE)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("linter", choices=("ruff", "shellcheck", "clang-tidy", "format"))
    parser.add_argument("root", help="top of the tree")
    parser.add_argument("--build", help="of which clang-tidy takes the commands")
    options = parser.parse_args()
    words = command(options)
    if shutil.which(words[0]) is None:
        print(f"{words[0]} is not installed: util/setup --for check")
        return SKIPPED
    result = subprocess.run(words, cwd=options.root, capture_output=True, text=True)
    print("\n".join(line for line in result.stdout.splitlines() if "warnings generated" not in line))
    if result.returncode:
        print(result.stderr[-2000:])
    return SKIPPED if result.returncode == SKIPPED else int(result.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
