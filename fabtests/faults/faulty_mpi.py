"""Open MPI, everybody to everybody and collectives, every byte checked, under losses, reordering, duplicates and damage."""
import sys

import faulty_network
from faulty_network import nodes

PATH = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster"]
PATTERNS = ("all_to_all", "all_to_all_mixed", "all_reduce", "wildcards", "storm")


def check(network, options):
    """One job; returns the reason why it failed, or None."""
    chosen = [word for pattern in PATTERNS for word in ("--only", pattern)]
    result = nodes.vcluster(
        "mpirun", "--name", network.name, "--mca", "mpi_yield_when_idle", "1", "-np", "4", "--timeout", "110", *PATH,
        options.check, "--rounds", "1", "--timeout", "100", *chosen, env=faulty_network.environment(options), capture_output=True)
    print(result.stdout)
    if result.returncode != 0:
        return f"exit status {result.returncode}: {result.stderr}"
    return None if "PASS mpi_check" in result.stdout else "nothing was checked"


def main():
    made = faulty_network.parser(__doc__)
    made.add_argument("--check", required=True, help="the program mpi_check")
    options = made.parse_args()
    faulty_network.prepare("mpirun")
    network = faulty_network.Network(2)
    return faulty_network.under_each_loss(network, lambda: check(network, options))


if __name__ == "__main__":
    sys.exit(main())
