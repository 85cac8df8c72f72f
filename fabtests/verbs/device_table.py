#!/usr/bin/env python3
"""Times of messages between two RDMA devices of this node, as a table in Markdown: the provider, libfabric's verbs;ofi_rxm, and UCX.

    device_table.py [--build BUILD] [--sizes N,N] INTERFACE INTERFACE

For soft-RoCE in a virtual machine, which is slower than any plan of cluster-perf expects: every figure is a run of its own, with few
messages and a generous limit. On hardware use cluster-perf --devices. Both sides spin, so two processors should have nothing else to do.
"""
import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "util"))
from cluster_perf_lib import placement, transports  # noqa: E402
from cluster_perf_lib.errors import Skipped  # noqa: E402
from cluster_perf_lib.plan import Item  # noqa: E402
from cluster_perf_lib.runs import Runner  # noqa: E402

MILLISECONDS = 300  # of a run of fabric_perf
ROUNDS = 60  # of ucx_perftest
LIMIT = 600
WINDOW = 8
PORT = 21000


def of_ucx(place, transport, item, build):
    environment = transports.environment(transport, build)
    test = "tag_lat" if item.measure == "latency" else "tag_bw"
    server = subprocess.Popen(place.command(1, ["ucx_perftest", "-c", "1", "-p", str(PORT)]), env=environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(5)
        done = subprocess.run(place.command(0, ["ucx_perftest", place.address(1), "-c", "0", "-p", str(PORT), "-t", test, "-s", str(item.bytes), "-n",
                                                str(ROUNDS), "-w", "10", "-O", str(item.window), "-f", "-v"]), env=environment, capture_output=True,
                              text=True, timeout=LIMIT, check=False)
    finally:
        server.kill()
        server.wait()
    lines = [line.split(",") for line in done.stdout.splitlines() if line.count(",") == 7 and line.strip()[:1].isdigit()]
    if done.returncode != 0 or not lines:
        raise Skipped((done.stdout + done.stderr)[-300:])
    return float(lines[-1][1]) if item.measure == "latency" else float(lines[-1][7]) * item.bytes


def figure(place, transport, item, build):
    """Microseconds one way, or bytes per second."""
    if transport.kind == "ucx":
        return of_ucx(place, transport, item, build)
    runner = Runner(build, MILLISECONDS, LIMIT)
    found = [sample["value"] for sample in runner._pair(place, transport, [item], "spin")]
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(TOP / "build" / "release"))
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=[8, 1024, 65536, 1 << 20])
    parser.add_argument("interfaces", nargs=2)
    options = parser.parse_args()
    place = placement.Devices(options.interfaces)
    chosen = transports.choose(place.name, None, [], devices=True)
    print("| | " + " | ".join(transport.name for transport in chosen) + " |\n|---|" + "---:|" * len(chosen), flush=True)
    for measure, window in (("latency", 1), ("bandwidth", WINDOW)):
        for size in options.sizes:
            cells = []
            for transport in chosen:
                try:
                    value = figure(place, transport, Item(measure, size, window), options.build)
                    cells.append(f"{value:.0f}" if measure == "latency" else f"{value / 1e6:.3g}")
                except (Skipped, subprocess.TimeoutExpired) as why:
                    print(f"{transport.name}, {measure} of {size} bytes: {why}", file=sys.stderr, flush=True)
                    cells.append("-")
            unit = "us, one way" if measure == "latency" else f"MB/s, window {window}"
            print(f"| {size} B, {unit} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
