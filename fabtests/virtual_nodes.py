"""Virtual nodes for tests under ctest: one cluster for all tests of a ctest run that can share it, others for one test.

The shared cluster is made by the fixture `virtual_nodes` (shared_nodes.py) and named after the process id of ctest, so it
is found by every test that ctest starts and removed by the next run when ctest was killed.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "util"))
from cluster_lib import build  # noqa: E402, F401
from cluster_lib.environment import of_provider, without_settings  # noqa: E402, F401
from cluster_lib.processes import die_with_parent  # noqa: E402
from vcluster_lib import state, temporary  # noqa: E402
from vcluster_lib.temporary import TOOL, vcluster  # noqa: E402, F401

SKIPPED = 77  # exit status that ctest reports as "skipped"
SHARED_NODES = 4


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def available():
    return not temporary.unavailable_reason()


def require(*programs):
    """Skips the test, with the reason, when virtual nodes cannot be made here or a program is not installed."""
    reason = temporary.unavailable_reason()
    if reason:
        skip(reason)
    for program in programs:
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    temporary.remove_orphans()


def make(nodes, *options, suffix=""):
    """A cluster for this test alone."""
    return temporary.make("ctest", nodes, *options, suffix=suffix)


def shared_name():
    return f"ctest-{os.getppid()}-shared"


def shared(nodes=2):
    """The cluster that the tests of this ctest run share; one for this test alone when there is none."""
    found = state.load(shared_name())
    if nodes <= SHARED_NODES and found and state.is_running(found):
        return temporary.Cluster(shared_name())
    return make(nodes)


def start(command, environment=None, **more):
    """A child that cannot outlive this process."""
    return subprocess.Popen(command, env={**os.environ, **(environment or {})}, preexec_fn=die_with_parent, **more)
