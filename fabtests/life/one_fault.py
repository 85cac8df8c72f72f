"""Each allocation and each system call of the provider fails once, while two endpoints exchange everything that it offers.

    one_fault.py --build BUILD --shim FILE --program one_fault [--every N] [--setting NAME] [--only FUNCTION[:K]]

A first run counts the calls of each function. Then the program runs once for the first, second, ... call of each (with --every
for each N-th of them all), and that call fails. The program tells what is allowed (one_fault.cc); a crash, a hang
and a line of terminate() are not.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

SETTINGS = {
    "shm": {},
    "udp": {"FI_CLUSTER_SHM": "no", "FI_CLUSTER_LINK": "udp"},
    "packet": {"FI_CLUSTER_SHM": "no", "FI_CLUSTER_LINK": "packet"},
    "udp-thread": {"FI_CLUSTER_SHM": "no", "FI_CLUSTER_LINK": "udp", "LIFE_PROGRESS_THREAD": "1"},
}
RAW = "packet"  # in a virtual node, so that no frame leaves this host
SECONDS_MAX = 60
REFUSED = 3
# The later calls of one that is made in every turn are the same call.
CALLS_MAX = collections.defaultdict(lambda: 60, malloc=100_000, realloc=1_000)
# libfabric loads a provider once: one that cannot be loaded is not there.
MAY_BE_REFUSED = "fi_getinfo"


class Program:
    def __init__(self, options):
        self.command = [os.path.abspath(options.program)]
        self.environment = {"LD_PRELOAD": os.path.abspath(options.shim)}
        self.node = None  # where raw frames may leave
        self.provider = os.path.join(os.path.abspath(options.build), "prov", "cluster")

    def run(self, setting, **more):
        """(exit status or None, what it printed, the trace of the fault)"""
        variables = {**SETTINGS[setting], **self.environment, **more}
        before = [*self.node.command(1), "env", *(f"{name}={value}" for name, value in variables.items())] if setting == RAW else []
        environment = virtual_nodes.of_provider(self.provider, **({} if before else variables))
        try:
            done = subprocess.run([*before, *self.command], env=environment, capture_output=True, text=True,
                                  timeout=SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as hung:
            return None, "", (hung.stderr or b"").decode()
        return done.returncode, done.stdout.strip(), done.stderr

    def callers(self, trace):
        """The functions that called, by the trace that fault_shim writes; those of the C++ library are left out."""
        places = re.findall(r"libcluster-fi\.so\(\+(0x[0-9a-f]+)\)", trace)[:14]
        if not places or not shutil.which("addr2line"):
            return trace
        plugin = os.path.join(self.provider, "libcluster-fi.so")
        lines = subprocess.run(["addr2line", "-Cfpsi", "-e", plugin, *places], capture_output=True, text=True, check=False).stdout
        return "\n".join(f"    {line[:160]}" for line in lines.splitlines() if "cluster::" in line and "std::" not in line[:40])

    def counts(self, setting):
        with tempfile.NamedTemporaryFile("r") as file:
            status, text, _ = self.run(setting, LIFE_FAULT_COUNTS=file.name, LIFE_FAULT_TRACE="yes")
            if status != 0 or text:
                sys.exit(f"{setting}: fails without a fault: {status} {text}")
            return {name: int(count) for name, count in (line.split() for line in file)}


def faults_of(counts, only):
    function, _, number = only.partition(":")
    for name, count in sorted(counts.items()):
        if not function or name == function:
            yield from (f"{name}:{k}" for k in range(1, min(count, CALLS_MAX[name]) + 1) if not number or k == int(number))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="begin with this one (default: %(default)s)")
    parser.add_argument("--setting", action="append", choices=SETTINGS)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=4, help="programs at once, which wait most of the time")
    options = parser.parse_args()
    program = Program(options)
    failed = 0
    for setting in options.setting or SETTINGS:
        if setting == RAW and not virtual_nodes.available():
            print(f"{setting}: left out: it needs a virtual node")
            continue
        if setting == RAW:
            program.node = virtual_nodes.make(1, suffix="-fault")
        kinds = collections.Counter()
        faults = list(faults_of(program.counts(setting), options.only))[options.first::options.every]
        workers = concurrent.futures.ThreadPoolExecutor(options.jobs)
        results = workers.map(lambda fault, on=setting: program.run(on, LIFE_FAULT=fault, LIFE_FAULT_TRACE="yes"), faults)
        for fault, (status, text, trace) in zip(faults, results):
            refused = status == REFUSED and text.startswith(f"not even a second attempt: {MAY_BE_REFUSED}")
            good = status == 0 or refused
            kinds["FAILED" if not good else "refused" if refused else "an error" if text else "unnoticed"] += 1
            failed += not good
            if not good or options.only:
                print(f"{setting} {fault}: {'hangs' if status is None else status}: {text}", flush=True)
                if not good:
                    print(program.callers(trace), flush=True)
        print(f"{setting}: {len(faults)} faults: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())), flush=True)
    sys.exit(failed != 0)


main()
