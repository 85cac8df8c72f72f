#!/usr/bin/env python3
"""Runs libfabric's own fi_pingpong over `cluster`: all sizes, every byte checked, all ways it knows.

usage: run_pingpong.py SETTING
"""
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import nodes  # noqa: E402

CONTROL_PORT = 47592  # fi_pingpong's own TCP connection
SECONDS_MAX = 140

# setting -> (environment of the server, environment of the client, on one node?)
SETTINGS = {
    "packet": ({"FI_CLUSTER_LINK": "packet"}, {"FI_CLUSTER_LINK": "packet"}, False),
    "udp": ({"FI_CLUSTER_LINK": "udp"}, {"FI_CLUSTER_LINK": "udp"}, False),
    "packet-udp": ({"FI_CLUSTER_LINK": "packet"}, {"FI_CLUSTER_LINK": "udp"}, False),
    "udp-packet": ({"FI_CLUSTER_LINK": "udp"}, {"FI_CLUSTER_LINK": "packet"}, False),
    "node": ({}, {}, True),
}


# what to run -> (arguments, the last size in its table); bare, fi_pingpong asks for datagrams
MODES = {
    "messages": (["-e", "rdm", "-m", "msg"], "1m"),
    "tagged": (["-e", "rdm", "-m", "tagged"], "1m"),
    "bare": ([], "1k"),
}


def pingpong(setting, mode, server_node, client_node):
    """One run; returns the reason why it failed, or None."""
    server_settings, client_settings, _ = SETTINGS[setting]
    arguments, last_size = MODES[mode]
    command = ["fi_pingpong", "-p", "cluster", "-c", "-S", "all", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    server = nodes.start(server_node.command(*command), server_settings, **pipes)
    client = None
    try:
        deadline = time.monotonic() + 20
        while not server_node.listens(CONTROL_PORT):
            if server.poll() is not None or time.monotonic() > deadline:
                return "the server did not come up:\n" + _last_words(server)
            time.sleep(0.02)
        client = nodes.start(client_node.command(*command, nodes.ADDRESSES[0]), client_settings, **pipes)
        output, _ = client.communicate(timeout=SECONDS_MAX)
        server_output, _ = server.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        return "no end in time\n--- client\n" + _last_words(client) + "--- server\n" + _last_words(server)
    finally:
        for child in (client, server):
            if child is not None and child.poll() is None:
                child.kill()
                child.wait()
    print(f"{setting}, {mode}:\n{output}")
    if client.returncode != 0 or server.returncode != 0:
        return f"exit codes {client.returncode} and {server.returncode}\n--- client\n{output}--- server\n{server_output}"
    return None if last_size in output else "the table is not complete"


def _last_words(child):
    child.kill()
    return child.communicate()[0] or ""


def main(arguments):
    if len(arguments) != 2 or arguments[1] not in SETTINGS:
        print(__doc__, "settings: " + ", ".join(SETTINGS), sep="\n", file=sys.stderr)
        return 2
    reason = nodes.unavailable()
    if reason is None and shutil.which("fi_pingpong") is None:
        reason = "needs fi_pingpong (Debian: libfabric-bin): not run"
    if reason:
        print(reason)
        return nodes.SKIPPED
    failed = False
    with nodes.Nodes() as (first, second):
        client_node = first if SETTINGS[arguments[1]][2] else second
        for mode in MODES:
            if trouble := pingpong(arguments[1], mode, first, client_node):
                print(f"{arguments[1]}, {mode}: FAILED: {trouble}")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
