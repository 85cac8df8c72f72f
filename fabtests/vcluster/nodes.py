"""Virtual nodes for tests: made for one test, gone afterwards, whatever happens to the test."""
import atexit
import os
import re
import signal
import subprocess
import sys

SKIPPED = 77  # what ctest takes as "skipped"
VCLUSTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util", "vcluster")
_NAME = re.compile(r"ctest-(\d+)(-.*)?")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def vcluster(*arguments, **options):
    return subprocess.run([sys.executable, VCLUSTER, *arguments], text=True, check=False, **options)


def need_root():
    """Leaves the test with a reason when virtual nodes cannot be made here."""
    if os.geteuid() != 0:
        skip("virtual nodes need root")
    probe = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        skip("the kernel allows no new namespaces here")


def sweep():
    """Removes clusters of tests that were killed before they could do it."""
    try:
        names = os.listdir("/run/vcluster")
    except FileNotFoundError:
        return
    for name in names:
        match = _NAME.fullmatch(name)
        if match and not os.path.exists(f"/proc/{match.group(1)}"):
            vcluster("down", "--name", name, capture_output=True)


def make(nodes, *options, suffix=""):
    """Makes a cluster for the life of this process and returns its name."""
    name = f"ctest-{os.getpid()}{suffix}"
    # A test that is told to stop still takes its nodes down, by way of SystemExit and atexit.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    atexit.register(vcluster, "down", "--name", name, capture_output=True)
    result = vcluster("up", "--name", name, "-n", str(nodes), *options, capture_output=True)
    if result.returncode != 0:
        print(result.stderr, end="")
        sys.exit(1)
    return name
