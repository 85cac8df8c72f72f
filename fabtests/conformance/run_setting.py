#!/usr/bin/env python3
"""Runs a conformance program in one setting: on which nodes its processes are, and over which link they communicate.

usage: run_setting.py SETTING[-auto] PROGRAM [ARGUMENTS...]

The settings nodes-verbs... need FAKE_IBVERBS, the file of the library that stands in for libibverbs. With -auto, tests that set no progress mode request automatic progress.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import virtual_nodes  # noqa: E402

SECONDS_MAX = 580

KEYED = "FI_CLUSTER_KEY=" + "0123456789abcdef" * 2
ENCRYPTED = KEYED + " FI_CLUSTER_SECURITY=encrypt"

VERBS = "FI_CLUSTER_LINK=verbs FI_CLUSTER_TEST_VERBS=" + os.environ.get("FAKE_IBVERBS", "")

# setting -> (where: process | node | nodes | four, environment of even sides, environment of odd sides)
SETTINGS = {
    "loopback-shm": ("process", "", ""),
    "loopback-udp": ("process", "FI_CLUSTER_SHM=no FI_CLUSTER_LINK=udp", "FI_CLUSTER_SHM=no FI_CLUSTER_LINK=udp"),
    "node": ("node", "", ""),
    "node-keyed": ("node", KEYED, KEYED),
    "nodes-encrypt": ("nodes", ENCRYPTED + " FI_CLUSTER_LINK=packet", ENCRYPTED + " FI_CLUSTER_LINK=udp"),
    "nodes-packet": ("nodes", "FI_CLUSTER_LINK=packet", "FI_CLUSTER_LINK=packet"),
    "nodes-udp": ("nodes", "FI_CLUSTER_LINK=udp", "FI_CLUSTER_LINK=udp"),
    "nodes-mixed": ("nodes", "FI_CLUSTER_LINK=packet", "FI_CLUSTER_LINK=udp"),
    "nodes-verbs": ("nodes", VERBS, VERBS),
    # One side's device disappears in the middle.
    "nodes-verbs-lost": ("nodes", VERBS + " FAKE_VERBS_FAULT=remove@50", VERBS),
    "four-packet": ("four", "FI_CLUSTER_LINK=packet", "FI_CLUSTER_LINK=packet"),
    "four-mixed": ("four", "FI_CLUSTER_LINK=packet", "FI_CLUSTER_LINK=udp"),
}

FILTER = "--gtest_filter="
LEFT_OUT = FILTER + "-"
NEEDS_A_NETWORK = "Failure.SendingToAMissingNodeFailsInBoundedTime"  # left out on loopback, where every address answers


def run(program, environment):
    child = virtual_nodes.start(program, environment)
    try:
        return child.wait(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        child.kill()
        print(f"{program[0]} did not end within {SECONDS_MAX} s and was killed")
        return 1


def main(arguments):
    setting = arguments[1].removesuffix("-auto") if len(arguments) >= 3 else ""
    if setting not in SETTINGS:
        print(__doc__, "settings: " + ", ".join(SETTINGS), sep="\n", file=sys.stderr)
        return 2
    where, even, odd = SETTINGS[setting]
    environment = {"CONFORMANCE_ENV_A": even, "CONFORMANCE_ENV_B": odd}
    if setting != arguments[1]:
        environment["CONFORMANCE_PROGRESS"] = "auto"
    command = arguments[2:]
    left_out = [word.removeprefix(LEFT_OUT) for word in command if word.startswith(LEFT_OUT)]  # the last such option counts
    if where == "process":
        environment["CONFORMANCE_NODE"] = "127.0.0.1"
        left_out.append(NEEDS_A_NETWORK)
        if virtual_nodes.available():  # not needed, but a process starts faster there
            command = virtual_nodes.shared().command(1, *command)
    else:
        virtual_nodes.require()
        nodes = {"node": (1, 1), "nodes": (1, 2), "four": (1, 2, 3, 4)}[where]
        cluster = virtual_nodes.shared(max(nodes))
        environment.update((f"CONFORMANCE_NETNS_{letter}", cluster.namespace(node)) for letter, node in zip("ABCD", nodes))
        command = cluster.command(1, *command)
    chosen = [word.removeprefix(FILTER) for word in command if word.startswith(FILTER) and not word.startswith(LEFT_OUT)]
    if left_out:
        command.append(FILTER + "".join(chosen) + "-" + ":".join(left_out))
    return run(command, environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
