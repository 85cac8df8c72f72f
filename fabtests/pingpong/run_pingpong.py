#!/usr/bin/env python3
"""Runs libfabric's own fi_pingpong over `cluster`: all sizes, every byte checked, over each kind of endpoint and message.

usage: run_pingpong.py SETTING
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fi_pingpong  # noqa: E402
import virtual_nodes  # noqa: E402

SECONDS_MAX = 140
PACKET, UDP = {"FI_CLUSTER_LINK": "packet"}, {"FI_CLUSTER_LINK": "udp"}

# setting -> (environments, nodes), each of the server and of the client
SETTINGS = {
    "packet": ((PACKET, PACKET), (1, 2)),
    "udp": ((UDP, UDP), (1, 2)),
    "packet-udp": ((PACKET, UDP), (1, 2)),
    "udp-packet": ((UDP, PACKET), (1, 2)),
    "node": (({}, {}), (1, 1)),
}

# what to run -> (arguments, the last size in its table); without -e fi_pingpong uses datagram endpoints
MODES = {
    "messages": (["-e", "rdm", "-m", "msg"], "1m"),
    "tagged": (["-e", "rdm", "-m", "tagged"], "1m"),
    "datagrams": ([], "1k"),
    "connections": (["-e", "msg"], "1m"),
    "ofi_rxm": (["-e", "rdm", "-m", "tagged"], "1m"),
}
# ofi_rxm builds endpoints without connections on connections. It opens many of those, which share receives.
LAYERED = {"FI_PROVIDER": "cluster,ofi_rxm", "FI_CLUSTER_TEST_LAYERS": "yes"}


def main(arguments):
    if len(arguments) != 2 or arguments[1] not in SETTINGS:
        print(__doc__, "settings: " + ", ".join(SETTINGS), sep="\n", file=sys.stderr)
        return 2
    virtual_nodes.require("fi_pingpong")
    environments, nodes = SETTINGS[arguments[1]]
    cluster = virtual_nodes.shared()
    failed = False
    for mode, (words, last_size) in MODES.items():
        provider, settings = ("cluster;ofi_rxm", LAYERED) if mode == "ofi_rxm" else ("cluster", {})
        failure, output = fi_pingpong.run(cluster, nodes, [each | settings for each in environments], ["-S", "all", *words],
                                          SECONDS_MAX, provider)
        print(f"{arguments[1]}, {mode}:\n{output}")
        if failure is None and last_size not in output:
            failure = "the table is not complete"
        if failure:
            print(f"{arguments[1]}, {mode}: FAILED: {failure}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
