"""Runs a command written in C++ by its name in util/: this process becomes the program of the build tree.

It never builds: a user who asks about a hanging job or an option gets the answer at once, or one line that says what to
type.
"""
import os
import sys

from . import build


def main(name, arguments):
    """[--build DIRECTORY] and the options of the command itself."""
    directory = build.DEFAULT
    if arguments[:1] == ["--build"]:
        if len(arguments) < 2:
            print(f"{name}: --build needs a directory", file=sys.stderr)
            return 2
        directory, arguments = arguments[1], arguments[2:]
    if build.missing([name], directory):
        print(f"{name}: {build.advice(name, directory)}", file=sys.stderr)
        return 1
    program = build.path(name, directory)
    return os.execv(program, [program, *arguments])
