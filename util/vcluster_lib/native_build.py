"""Builds the parts of vcluster in C and C++ at their first use and after each change; keeps them under
/run/vcluster."""
import glob
import hashlib
import os
import shutil
import subprocess
import sys

from cluster_lib import build

from . import state
from .errors import VclusterError

_SOURCES = os.path.join(os.path.dirname(os.path.realpath(__file__)), "native")
_COMMANDS = {
    "faults.bpf.c": ["clang", "-O2", "-g", "-Wall", "-Wextra", "-target", "bpf"],
    "delay_queue.cc": ["clang++", "-std=c++20", "-O2", "-Wall", "-Wextra"],
}


def _fingerprint():
    text = hashlib.sha256(repr(_COMMANDS).encode())
    for name in sorted(os.listdir(_SOURCES)):
        with open(os.path.join(_SOURCES, name), "rb") as file:
            text.update(name.encode() + b"\0" + file.read())
    return text.hexdigest()[:16]


def ensure_compiler():
    """Installs the compiler if it is missing, which takes minutes."""
    if any(shutil.which(command[0]) is None for command in _COMMANDS.values()):
        build.packages("faults")


def built(source):
    """The path of the program built from a file in native/."""
    directory = os.path.join(state.ROOT, ".native-" + _fingerprint())
    target = os.path.join(directory, source.partition(".")[0])
    if os.path.exists(target):
        return target
    command = _COMMANDS[source]
    print(f"vcluster: building {source}, once", file=sys.stderr, flush=True)
    os.makedirs(directory, exist_ok=True)
    # The place of <asm/types.h> on Debian; a compiler for another machine does not look there by itself.
    places = [f"-I{place}" for place in glob.glob("/usr/include/*-linux-gnu")]
    new = f"{target}.{os.getpid()}"
    result = subprocess.run([*command, *places, "-o", new, *(["-c"] if source.endswith(".c") else []),
                             os.path.join(_SOURCES, source)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise VclusterError(f"cannot build {source}: {(result.stderr.strip() or 'no reason given').splitlines()[0]}")
    os.replace(new, target)
    return target
