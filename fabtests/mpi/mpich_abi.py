#!/usr/bin/env python3
"""Compares coll/mpich_abi.h with the header of an MPICH: each constant must have its value there.

    mpich_abi.py --cache DIRECTORY          # of MPI libraries (mpi_libraries.py)
"""
import argparse
import os
import re
import subprocess
import sys

from mpi_libraries import LIBRARIES

HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "coll", "mpich_abi.h")
_CONSTANT = re.compile(r"^inline constexpr \w+ (MPI_\w+) = ([-\w]+);", re.MULTILINE)
_POINTER = re.compile(r"^#define (MPI_\w+) \(reinterpret_cast<.*>\((-?\d+)\)\)", re.MULTILINE)


def assertions(text):
    """A C program that compiles if the values are those of the mpi.h it includes."""
    constants = _CONSTANT.findall(text)
    pointers = _POINTER.findall(text)
    if len(constants) < 40 or len(pointers) != 2:
        raise SystemExit("mpich_abi.py: coll/mpich_abi.h is not written as this script expects")
    lines = ["#include <mpi.h>", "#include <stddef.h>"]
    lines += [f'_Static_assert((int){name} == (int){value}, "{name}");' for name, value in constants]
    lines += ['_Static_assert(sizeof(MPI_Aint) == sizeof(long), "MPI_Aint");',
              '_Static_assert(sizeof(MPI_Status) == 20 && offsetof(MPI_Status, MPI_SOURCE) == 8, "MPI_Status");',
              "int main(void) {"]
    lines += [f"  if ((void*){name} != (void*){value}) return 1;" for name, value in pointers]
    return "\n".join(lines + ["  return MPI_COMM_NULL_COPY_FN != (void*)0;", "}", ""])


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--cache", required=True, help="of MPI libraries")
    include = LIBRARIES["mpich"].prefix(options.parse_args().cache).resolve() / "include"
    with open(HEADER, encoding="utf-8") as header:
        program = assertions(header.read())
    # Only values are looked at: nothing of the library is linked.
    compiled = subprocess.run(["cc", "-std=c11", f"-I{include}", "-x", "c", "-fsyntax-only", "-"], input=program, text=True,
                              check=False)
    if compiled.returncode != 0:
        return 1
    print("PASS mpich_abi")
    return 0


if __name__ == "__main__":
    sys.exit(main())
