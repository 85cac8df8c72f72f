"""Virtual nodes for tests: made for one test, gone afterwards, whatever happens to the test."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from vcluster_lib import temporary  # noqa: E402

SKIPPED = 77  # what ctest takes as "skipped"
VCLUSTER = temporary.TOOL
vcluster = temporary.vcluster


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def prepare():
    """Leaves the test with a reason when virtual nodes cannot be made here; clears what killed tests left."""
    reason = temporary.unavailable_reason()
    if reason:
        skip(reason)
    temporary.remove_orphans()


def make(nodes, *options, suffix=""):
    """Makes a cluster for the life of this test and returns its name."""
    return temporary.make("ctest", nodes, *options, suffix=suffix)
