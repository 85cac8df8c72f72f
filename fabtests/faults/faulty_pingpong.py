"""libfabric's own fi_pingpong, small to large, every byte checked, under loss, reordering, duplication and corruption."""
import sys

import faulty_network
from faulty_network import virtual_nodes

import fi_pingpong

SECONDS_MAX = 60
ROUNDS = {64: 200, 20_000: 50, 1_048_576: 5}  # by size: messages of one packet, of several, and large ones


def pingpong(cluster, environment, size):
    """Messages of one size; returns why it failed, or None."""
    arguments = ["-e", "rdm", "-S", str(size), "-I", str(ROUNDS[size])]
    failure, output = fi_pingpong.run(cluster, (1, 2), (environment, environment), arguments, SECONDS_MAX)
    print(output)
    return failure


def every_size(cluster, environment):
    return next(filter(None, (pingpong(cluster, environment, size) for size in ROUNDS)), None)


def main():
    options = faulty_network.parser(__doc__).parse_args()
    faulty_network.require("fi_pingpong")
    cluster = virtual_nodes.make(2)
    return faulty_network.under_each_loss(cluster, lambda: every_size(cluster, faulty_network.environment(options)))


if __name__ == "__main__":
    sys.exit(main())
