"""Open MPI, all-to-all and collectives, every byte checked, under loss, reordering, duplication and corruption."""
import subprocess
import sys

import faulty_network
from faulty_network import virtual_nodes

PATH = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster"]
PATTERNS = ("all_to_all", "all_to_all_mixed", "all_reduce", "wildcards", "storm")


def check(cluster, options):
    """One job; returns why it failed, or None."""
    chosen = [word for pattern in PATTERNS for word in ("--only", pattern)]
    command = cluster.mpirun("--mca", "mpi_yield_when_idle", "1", "-np", "4", "--timeout", "110", *PATH,
                             options.check, "--rounds", "1", "--timeout", "100", *chosen)
    result = subprocess.run(command, env=faulty_network.environment(options), capture_output=True, text=True, check=False)
    print(result.stdout)
    if result.returncode != 0:
        return f"exit status {result.returncode}: {result.stderr}"
    return None if "PASS mpi_check" in result.stdout else "nothing was checked"


def main():
    made = faulty_network.parser(__doc__)
    made.add_argument("--check", required=True, help="the program mpi_check")
    options = made.parse_args()
    faulty_network.require("mpirun")
    cluster = virtual_nodes.make(2)
    return faulty_network.under_each_loss(cluster, lambda: check(cluster, options))


if __name__ == "__main__":
    sys.exit(main())
