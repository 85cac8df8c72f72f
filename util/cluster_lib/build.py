"""Finds the programs that a command needs, builds missing ones, and installs the packages for that.

In the source tree they are in build/release, or where --build says. In an installed tree a module `installed` beside
this one tells where they are. There this module builds and installs nothing; an error names what is missing.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

try:
    from . import installed
except ImportError:
    installed = None

_PROGRESS_SECONDS = 15  # between two signs of life of a build
_HERE = os.path.dirname(os.path.realpath(__file__))
TOP = os.path.dirname(os.path.dirname(_HERE))
DEFAULT = os.path.normpath(os.path.join(_HERE, installed.PREFIX)) if installed else os.path.join(TOP, "build", "release")
DEFAULT_IN_WORDS = "what is installed" if installed else "build/release, built when they are missing"
VERSION = installed.VERSION if installed else None  # in the source tree the revision is more precise; see also version()

# Debian's package names for each purpose of util/setup that an installed command can have.
_PACKAGES = {"agent": "python3-psutil python3-prometheus-client",
             "slurm": "slurmctld slurmd slurm-client munge",
             "slurmrest": "slurmctld slurmd slurm-client munge slurmrestd slurm-wlm-jwt-plugin",
             "page": "python3-psutil python3-prometheus-client python3-starlette python3-uvicorn python3-jinja2 python3-pampy "
                     "python3-websockets openssl",
             "gridengine": "gridengine-master gridengine-exec gridengine-client",
             "nodes": "iproute2 util-linux", "faults": "clang", "demo": "openmpi-bin", "perf": "python3-matplotlib ucx-utils"}

# Where each target lies in a build tree.
_PATHS = {
    "cluster-fi": "prov/cluster/libcluster-fi.so", "cluster-info": "util/info/cluster-info",
    "cluster-dissect": "util/dissect/cluster-dissect", "cluster-ip": "util/ip/cluster-ip",
    "cluster-relay": "util/relay/cluster-relay",
    "fabric_perf": "fabtests/perf/fabric_perf", "bare_perf": "fabtests/perf/bare_perf", "mpi_perf": "fabtests/perf/mpi_perf",
    "mpi_check": "fabtests/mpi/mpi_check", "mpi_scale": "fabtests/mpi/mpi_scale", "gauss_mpi": "fabtests/mpi/gauss_mpi",
    "matmul": "fabtests/mpi/matmul", "sleeping_yield": "fabtests/perf/libsleeping_yield.so", "gauss_perf": "fabtests/perf/gauss_perf",
    "example_pingpong": "fabtests/examples/pingpong", "budget_frames": "prov/cluster/test/budget/budget_frames"}

# Another program has a file of this name, and Ninja would take the name for that one.
_BY_PATH = ("matmul",)


class BuildError(Exception):
    """A program or package is missing and could not be built or installed; the text is one line with the reason."""


def _progress(text):
    print(text, file=sys.stderr, flush=True)


def packages(purpose):
    """Installs the packages of `util/setup --for PURPOSE` that are missing; BuildError with its reason when it cannot."""
    if installed:
        raise BuildError(f"packages are missing: apt install {_PACKAGES[purpose]} (their names in Debian)")
    result = subprocess.run([os.path.join(TOP, "util", "setup"), "--for", purpose], stdout=sys.stderr, stderr=subprocess.PIPE,
                            text=True, check=False)
    if result.returncode != 0:
        *reasons, last = result.stderr.strip().splitlines() or ["util/setup failed"]
        for line in reasons:  # what apt said
            _progress(line)
        raise BuildError(last.removeprefix("setup: "))


def path(target, directory=DEFAULT):
    """Where the target is, or would be."""
    if installed and os.path.realpath(directory) == os.path.realpath(DEFAULT):
        return os.path.join(directory, installed.PATHS[target])
    return os.path.join(directory, _PATHS[target])


def missing(targets, directory=DEFAULT):
    return [target for target in targets if not os.path.exists(path(target, directory))]


def version():
    """The version of this tree, as --version prints it."""
    if installed:
        return VERSION
    with open(os.path.join(TOP, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"^project\(.* VERSION ([0-9.]+)", file.read(), re.MULTILINE).group(1)


def advice(target, directory=DEFAULT):
    """One line that tells the user what to type when a program is missing."""
    if os.path.realpath(directory) != os.path.realpath(DEFAULT):
        return f"{path(target, directory)} is not there: build it first, or leave out --build"
    tests = "" if os.path.exists(os.path.join(DEFAULT, "CMakeCache.txt")) else " -DCLUSTER_TESTS=OFF"
    elsewhere = "" if os.path.realpath(os.getcwd()) == os.path.realpath(TOP) else f"cd {shlex.quote(TOP)} && "
    return (f"not built yet; type: {elsewhere}util/setup --for build && cmake --preset release{tests} && "
            f"cmake --build --preset release --target {target}")


def ensure(command, targets, directory=DEFAULT, purpose="demo", with_mpi=()):
    """Builds missing targets if `directory` is the default; any other directory must be complete. Builds those of
    `with_mpi` too if an MPI library is installed."""
    wanted = missing(targets, directory)
    usual = os.path.realpath(directory) == os.path.realpath(DEFAULT) and not installed
    if usual and shutil.which("mpicc"):
        wanted += missing(with_mpi, directory)
    if not wanted:
        return
    if os.path.realpath(directory) != os.path.realpath(DEFAULT):
        raise BuildError(f"{path(wanted[0], directory)} is not there: build first, or leave out --build")
    if installed:
        raise BuildError(f"{path(wanted[0])} is not installed")
    try:
        packages(purpose)
    except BuildError as reason:
        _progress(f"{command}: {reason}; trying to build with what is installed")
    if shutil.which("mpicc"):
        wanted += [target for target in missing(with_mpi, directory) if target not in wanted]
    log = os.path.join(TOP, "build", f"{command}.log")
    _progress(f"{command}: building {', '.join(wanted)}, once, which takes minutes (log: {os.path.relpath(log)})")
    os.makedirs(os.path.dirname(log), exist_ok=True)
    open(log, "w", encoding="utf-8").close()
    goals = [_PATHS[target] if target in _BY_PATH else target for target in wanted]
    for words in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", "--target", *goals]):
        try:
            status = logged(words, log)
        except FileNotFoundError as error:
            raise BuildError('cmake is not installed: run "util/setup --for build" as root') from error
        if status != 0:
            raise BuildError(f"\"{' '.join(words[:4])}\" failed: {_first_error(log)} (log: {os.path.relpath(log)})")


def logged(words, log, seconds=_PROGRESS_SECONDS):
    """Runs a command, and appends its output to the log. Now and then shows the last line, or for how long that has been the same.
    Returns the exit status."""
    shown, since = None, time.monotonic()
    with open(log, "a", encoding="utf-8") as output, \
            subprocess.Popen(words, cwd=TOP, stdout=output, stderr=subprocess.STDOUT) as child:
        while True:
            try:
                return child.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                last = (_lines(log) or ["no output yet"])[-1][:100]
                if last != shown:
                    shown, since = last, time.monotonic()
                    _progress(f"   {last}")
                else:
                    _progress(f"   ... for {time.monotonic() - since:.0f} s")


def _lines(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


def _first_error(log):
    lines = _lines(log)
    return next((line.strip() for line in lines if "error" in line.lower() or "FAILED" in line), lines[-1] if lines else "")
