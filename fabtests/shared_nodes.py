"""The fixture of ctest that makes and removes the cluster which tests share: shared_nodes.py up|down

Without the means to make virtual nodes it does nothing: each test that needs them says so itself."""
import os
import sys

import virtual_nodes
from vcluster_lib import temporary


def main(order):
    if temporary.unavailable_reason():
        return 0
    if order == "down":
        return virtual_nodes.vcluster("down", "--name", virtual_nodes.shared_name()).returncode
    temporary.remove_orphans()
    temporary.make("ctest", virtual_nodes.SHARED_NODES, suffix="-shared", owner=os.getppid())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
