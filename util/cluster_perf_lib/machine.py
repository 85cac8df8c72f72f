"""Describes the measured machine and its software, for the report."""
import datetime
import os
import platform
import re
import shutil
import subprocess
import time

from cluster_lib import build

BUSY = 0.3  # processors that other programs use while the figures are hardly disturbed
SHARED_CACHE_NS = 60  # a cache line takes 20 to 40 ns between processors that share a cache, 100 to 120 between others
CLASS_NEAR, CLASS_FAR = "whose processors share a cache", "whose processors share no cache"


def class_of(nearest):
    """The class of a machine, by the shortest time that a cache line took between its two processors."""
    if not nearest:
        return "of which nobody knows whether its processors share a cache"
    return f"{CLASS_NEAR if nearest <= SHARED_CACHE_NS else CLASS_FAR} ({nearest:.0f} ns for a cache line)"


def _first(command, pattern):
    if shutil.which(command[0]) is None:
        return ""
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    match = re.search(pattern, result.stdout)
    return match.group(1) if match else ""


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return "", False
    match = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return (match.group(1) if match else platform.machine()), bool(re.search(r"^flags.* hypervisor", text, re.MULTILINE))


def _busy_ticks():
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _wait, irq, softirq = map(int, file.readline().split()[1:8])
    return user + nice + system + irq + softirq


def busy_processors(seconds=1.0):
    """How many processors the programs of this machine use, measured for so long: call it before the own programs start. The load
    average would remember programs that have ended minutes ago."""
    before = _busy_ticks()
    time.sleep(seconds)
    return (_busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def describe():
    model, virtual = _processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": model, "processors": os.cpu_count(), "virtual": virtual, "memory_gb": round(memory, 1),
        "kernel": platform.release(),
        "libfabric": _first(["fi_info", "--version"], r"libfabric: ([\w.]+)"),
        "ucx": _first(["ucx_info", "-v"], r"[Vv]ersion:? ([0-9.]+)"),
        "open_mpi": _first(["mpirun", "--version"], r"\(Open MPI\) ([\w.]+)"),
        "revision": build.VERSION or _first(["git", "-C", build.TOP, "rev-parse", "--short", "HEAD"], r"(\w+)"),
        "busy_processors": round(busy_processors(), 2)}


def in_words(machine):
    kind = "virtual processors" if machine["virtual"] else "processors"
    peers = ", ".join(f"{name} {machine[key]}" for name, key in
                      (("libfabric", "libfabric"), ("UCX", "ucx"), ("Open MPI", "open_mpi")) if machine[key])
    return (f"{machine['processors']} {kind} {machine['processor']}, {machine['memory_gb']:g} GB, Linux {machine['kernel']}; "
            f"{peers}; {machine['date']}, revision {machine['revision'] or 'unknown'}")
