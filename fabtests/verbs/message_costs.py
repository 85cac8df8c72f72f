#!/usr/bin/env python3
"""Counts the instructions of a message over an RDMA device, beside libfabric's own verbs;ofi_rxm over the same device.

    message_costs.py --plugin DIRECTORY PROGRAM ADDRESS ADDRESS      PROGRAM: message_costs; both addresses are of this node

Counted by callgrind: what one thread executes in all calls of libfabric for both sides of a message, with libibverbs and its driver,
without the kernel. A read of a completion queue that finds nothing counts as well, but the thread sleeps before each read, so that
few do. The exit status is 1 if the provider needs more instructions than verbs;ofi_rxm, 77 without valgrind.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "prov" / "cluster" / "test" / "budget"))
import callgrind  # noqa: E402

SECONDS_MAX = 3000  # an interpreted machine, and a counting tool
PARTS = {"tagged_short": "8-byte tagged message", "put_short": "8-byte write", "tagged_long": "1 MB tagged message, pulled by the device"}
SLACK = 0.02  # what a turn more or less of the tool's slow clock costs
# verbs;ofi_rxm asks for a completion queue of 256 peers, which soft-RoCE does not have.
PROVIDERS = {"cluster": {"FI_PROVIDER": "cluster", "FI_CLUSTER_LINK": "verbs", "FI_CLUSTER_SHM": "no", "FI_CLUSTER_RAILS": "none"},
             "verbs;ofi_rxm": {"FI_UNIVERSE_SIZE": "4"}}


def count(provider, options):
    """Part -> instructions a message, and what the program says about reads."""
    environment = {**os.environ, **PROVIDERS[provider], "FI_PROVIDER_PATH": options.plugin if provider == "cluster" else "/nonexistent"}
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "profile")
        command = ["valgrind", "--tool=callgrind", "--toggle-collect=part_*", f"--callgrind-out-file={out}", options.program, provider,
                   *options.addresses, str(options.messages)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=environment)
        if done.returncode != 0 or not os.path.exists(out):
            raise RuntimeError(f"{' '.join(command)}\nended with status {done.returncode}:\n{done.stdout}{done.stderr[-4000:]}")
        with open(out, encoding="utf-8") as file:
            profile = callgrind.Profile(file)
    found = {}
    for part in PARTS:
        total = sum(costs["Ir"] for name, costs in profile.inclusive.items() if re.match(rf"part_{part}\b", name))
        found[part] = total / options.messages, re.search(rf"^{part} reads (.*)$", done.stdout, re.MULTILINE).group(1)
    if options.functions:
        for name, costs in sorted(profile.own.items(), key=lambda entry: -entry[1].get("Ir", 0))[:options.functions]:
            print(f"{provider:<14} {costs.get('Ir', 0) / options.messages:9.1f} {name.split('(')[0]}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="show the N dearest functions of each provider")
    parser.add_argument("--providers", default=",".join(PROVIDERS), help="(default: %(default)s)")
    parser.add_argument("program")
    parser.add_argument("addresses", nargs=2)
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("needs valgrind (Debian: valgrind): not run")
        return 77
    counted = {provider: count(provider, options) for provider in options.providers.split(",")}
    if len(counted) == 1:
        print(counted)
        return 0
    print("| both sides of | " + " | ".join(PROVIDERS) + " | reads |\n|---|" + "---:|" * (len(PROVIDERS) + 1))
    dearer = False
    for part, what in PARTS.items():
        figures = [counted[provider][part] for provider in PROVIDERS]
        print(f"| {what} | " + " | ".join(f"{total:.0f}" for total, _ in figures) + " | " + "; ".join(reads for _, reads in figures) + " |", flush=True)
        dearer |= figures[0][0] > figures[1][0] * (1 + SLACK)
    return 1 if dearer else 0


if __name__ == "__main__":
    sys.exit(main())
