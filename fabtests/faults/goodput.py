"""Prints how much gets through bad networks: goodput and longest stall against loss, and many senders to one narrow port.

    goodput.py --provider DIRECTORY --program GOODPUT [--repetitions 5]

Each number is the median of the repetitions. A stall is the longest time in which the port of the receiver saw no frame. The
first line of each link is without any fault injection, when virtual interfaces carry super-frames; shares are of the
second one, in which frames are cut as on a wire. Run it on a quiet machine: all nodes share its processors.
"""
import contextlib
import statistics
import subprocess
import sys

import faulty_network
from faulty_network import virtual_nodes

MEGABYTE = 1_048_576
PORT = "4711"
NARROW_BITS, NARROW_BUFFER = 10**9, "64k"
PATIENCE_SECONDS = 120


class Measurement:
    """One run of the program: node1 receives what `endpoints` on node2 send."""

    def __init__(self, cluster, options, link, endpoints, messages, *faults):
        environment = faulty_network.environment(options, link)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
        cluster.faults("--clear")
        with subprocess.Popen(cluster.command(1, options.program, "receive", PORT), **pipes) as receiver, \
             subprocess.Popen(cluster.command(2, options.program, "send", self._wait(receiver, cluster), PORT,
                                               str(endpoints), str(MEGABYTE), str(messages)), **pipes) as sender:
            try:
                if sender.stdout.readline() != "warm\n":
                    raise RuntimeError("the sender does not reach the receiver")
                if faults:
                    cluster.faults(*faults)
                before = self._port_bytes(cluster)
                sender.stdin.write("go\n")
                sender.stdin.flush()
                words = sender.stdout.readline().split()
                self.port_bytes = self._port_bytes(cluster) - before
                self.counts = next(iter(cluster.fault_counts("--nodes", "1")), {})
            finally:
                for process in (sender, receiver):
                    self._end(process)
        if len(words) != 3:
            raise RuntimeError("the sender did not come to its end")
        self.seconds = float(words[2])
        self.goodput = int(words[1]) / self.seconds
        self.port_share = self.port_bytes * 8 / self.seconds / NARROW_BITS

    @staticmethod
    def _end(process):
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()

    @staticmethod
    def _wait(receiver, cluster):
        receiver.stdout.readline()
        return cluster.address(1)

    @staticmethod
    def _port_bytes(cluster):
        return cluster.links("switch")["n1r0"]["stats64"]["tx"]["bytes"]

    @property
    def stall_ms(self):
        return self.counts.get("longest_gap_ns", 0) / 10**6


def median(runs, attribute):
    return statistics.median(getattr(run, attribute) for run in runs)


def against_loss(cluster, options, link):
    print(f"\n{link}, one sender, 1 MB messages\n{'loss':>12} {'MB/s':>8} {'share':>7} {'stall ms':>9} {'lost':>7}")
    base = None
    for loss in (None, *options.losses.split(",")):
        faults = () if loss is None else ("--loss", loss, "--only", "udp", "--nodes", "1")
        runs = [Measurement(cluster, options, link, 1, options.messages, *faults) for _ in range(options.repetitions)]
        goodput = median(runs, "goodput")
        base = goodput if loss == "0" else base
        share = f"{goodput / base:7.0%}" if base else "      -"
        lost = sum(run.counts.get("lost", 0) for run in runs)
        print(f"{loss or 'not cut':>12} {goodput / 10**6:8.1f} {share} {median(runs, 'stall_ms'):9.2f} {lost:7}", flush=True)


def many_to_one(cluster, options, link):
    print(f"\n{link}, many senders of 1 MB messages, a port of 1 Gbit/s with {NARROW_BUFFER}\n"
          f"{'senders':>12} {'MB/s':>8} {'port':>7} {'stall ms':>9} {'tail drops':>10}")
    for senders in map(int, options.senders.split(",")):
        runs = [Measurement(cluster, options, link, senders, max(1, options.messages // senders), "--rate", "1gbit",
                            "--buffer", NARROW_BUFFER, "--only", "udp", "--nodes", "1") for _ in range(options.repetitions)]
        drops = statistics.median(run.counts["tail_drops"] for run in runs)
        print(f"{senders:12} {median(runs, 'goodput') / 10**6:8.1f} {median(runs, 'port_share'):7.1%} "
              f"{median(runs, 'stall_ms'):9.2f} {drops:10.0f}", flush=True)


def main():
    made = faulty_network.parser(__doc__.splitlines()[0])
    made.add_argument("--program", required=True, help="the program goodput")
    made.add_argument("--repetitions", type=int, default=5, help="(default: %(default)s)")
    made.add_argument("--messages", type=int, default=160, help="of 1 MB in each run, over all senders (default: %(default)s)")
    made.add_argument("--losses", default="0,0.1%,1%,5%,10%", help="(default: 0 to 10 percent; 0 first)")
    made.add_argument("--senders", default="1,4,16", help="(default: %(default)s)")
    made.add_argument("--links", default="packet,udp", help="(default: %(default)s)")
    options = made.parse_args()
    faulty_network.require()
    cluster = virtual_nodes.make(2)
    for link in options.links.split(","):
        against_loss(cluster, options, link)
        many_to_one(cluster, options, link)
    return 0


if __name__ == "__main__":
    sys.exit(main())
