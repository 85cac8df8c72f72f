"""The processes of one example, started as its README says: RANK SIZE HOST:PORT, each on its node."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import virtual_nodes  # noqa: E402

SECONDS_MAX = 120  # for one program


def run(cluster, program, size, port, nodes, environment, *options, **more):
    """The exit statuses of all processes, and what rank 0 printed; one that does not end is killed, and has None."""
    where = f"{cluster.address(1)}:{port}"
    children = [virtual_nodes.start(cluster.command(1 + rank % nodes, *program, str(rank), str(size), where, *options),
                                    environment, text=True, stdout=subprocess.PIPE if rank == 0 else None, **more)
                for rank in range(size)]
    limit = time.monotonic() + SECONDS_MAX
    results, said = [], ""
    for child in children:
        # Rank 0 ends when all others have come to its last barrier. After a failure the others are not waited for long.
        failed = any(result != 0 for result in results)
        try:
            said += child.communicate(timeout=1 if failed else max(limit - time.monotonic(), 1))[0] or ""
            results.append(child.returncode)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            results.append(None)
    return results, said


def wait_until_it_listens(cluster, node, port, child):
    """False if the child has ended before."""
    limit = time.monotonic() + SECONDS_MAX
    while child.poll() is None and time.monotonic() < limit:
        if cluster.listens(node, port):
            return True
    return False
