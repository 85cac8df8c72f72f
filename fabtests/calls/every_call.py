"""Runs every_call in one mode (every_call.cc lists them) inside a node and over each link, with and without keys.

    every_call.py --build BUILD --program every_call [--setting NAME]... stack|cancelled
"""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

SECONDS_MAX = 120

KEYED = {"FI_CLUSTER_KEY": "0123456789abcdef" * 2}
NETWORK = {"FI_CLUSTER_SHM": "no", "CALLS_GROUP": "239.255.77.1"}
LOG = {"FI_LOG_LEVEL": "info"}
SETTINGS = {
    "node": {},
    "node-keyed": KEYED,
    "packet": {**NETWORK, "FI_CLUSTER_LINK": "packet"},
    "udp": {**NETWORK, "FI_CLUSTER_LINK": "udp"},
    "packet-encrypt": {**NETWORK, "FI_CLUSTER_LINK": "packet", "FI_CLUSTER_SECURITY": "encrypt"},  # and a key file
    "udp-auto": {**NETWORK, "FI_CLUSTER_LINK": "udp", "CALLS_PROGRESS": "auto"},
    "node-log": LOG,
    "packet-log": {**NETWORK, **LOG, "FI_CLUSTER_LINK": "packet"},
}
LOG_STACK = 16 * 1024  # libfabric's log and the C library take some 11 KB for a line


def variables_of(setting, key_file):
    found = dict(SETTINGS[setting])
    if "FI_CLUSTER_SECURITY" in found:
        found["FI_CLUSTER_KEY_FILE"] = key_file
    return [f"{name}={value}" for name, value in found.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--setting", action="append", choices=SETTINGS)
    parser.add_argument("mode", choices=("stack", "cancelled"))
    options = parser.parse_args()
    virtual_nodes.require()
    node = virtual_nodes.shared(1)
    environment = virtual_nodes.of_provider(os.path.join(os.path.abspath(options.build), "prov", "cluster"))
    failed = []
    key_file = tempfile.NamedTemporaryFile("w", prefix="every_call-")  # of mode 0600
    key_file.write("0123456789abcdef" * 2)
    key_file.flush()
    for setting in options.setting or SETTINGS:
        mode = [options.mode, str(LOG_STACK)] if options.mode == "stack" and setting.endswith("-log") else [options.mode]
        command = node.command(1, "env", *variables_of(setting, key_file.name), os.path.abspath(options.program), *mode)
        try:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  timeout=SECONDS_MAX, check=False)
            status, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired as hung:
            status, text = "hangs", (hung.stdout or b"").decode()
        print(f"{setting}: {status}\n{text}", flush=True)
        if status != 0:
            failed.append(setting)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


main()
