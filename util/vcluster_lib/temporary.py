"""Clusters that live as long as one process: for the demo, the benchmark and the tests.

Their names carry the number of that process. When it was killed before it could clean up, the next one does."""
import atexit
import os
import re
import signal
import subprocess
import sys

from . import state

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "vcluster")
_NAME = re.compile(r"(?:ctest|demo|perf)-(\d+)(?:-.*)?")


def vcluster(*arguments, **options):
    return subprocess.run([sys.executable, TOOL, *arguments], text=True, check=False, **options)


def unavailable_reason():
    """Why no virtual nodes can be made here, in a few words; empty when they can."""
    if os.geteuid() != 0:
        return "virtual nodes need root"
    probe = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "true"], capture_output=True, check=False)
    return "" if probe.returncode == 0 else "the kernel allows no new namespaces here"


def remove_orphans():
    """Removes clusters whose process is gone."""
    for name in state.names():
        match = _NAME.fullmatch(name)
        if match and not os.path.exists(f"/proc/{match.group(1)}"):
            vcluster("down", "--name", name, capture_output=True)


def make(kind, nodes, *options, suffix=""):
    """Makes a cluster for the life of this process; returns its name, or raises RuntimeError with the reason."""
    name = f"{kind}-{os.getpid()}{suffix}"
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Told to stop, the process still leaves by the front door, where atexit waits.
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    atexit.register(vcluster, "down", "--name", name, capture_output=True)
    result = vcluster("up", "--name", name, "-n", str(nodes), *options, capture_output=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())
    return name
