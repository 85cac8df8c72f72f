"""Prints what the loss of a rail costs: goodput, and the longest time in which no message came to its end.

    rail_loss.py --provider DIRECTORY --program GOODPUT [--repetitions 5]

Two nodes, rails of 1 Gbit/s each, messages of 1 MB, two at once. A rail is cut when a quarter of the bytes has passed: `switch`
is its cable pulled at the far end, which the sender cannot see, `down` its carrier lost. Each figure is the median of the
repetitions (of the gap: the longest, too); a message takes 8.4 ms on one rail. The gap counts from the first message.
"""
import argparse
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

MEGABYTE = 1_048_576
PORT = "4711"
PATIENCE_SECONDS = 60
CUTS = {"none": None, "switch": ("nomaster",), "down": ("down",)}


class Run:
    """node1 receives what node2 sends; rail 1 of node1 is cut meanwhile."""

    def __init__(self, options, rails, link, cut):
        # A new cluster for each run, so that nothing left by an earlier cut is measured.
        self.cluster = virtual_nodes.make(2, "--rails", str(rails), "--rate", "1gbit", suffix=f"-{rails}")
        try:
            self._measure(options, rails, link, cut)
        finally:
            self.cluster.down()

    def _measure(self, options, rails, link, cut):
        environment = virtual_nodes.of_provider(options.provider, FI_CLUSTER_LINK=link)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
        receive = self.cluster.command(1, options.program, "receive", PORT)
        send = self.cluster.command(2, options.program, "send", self.cluster.address(1), PORT, "1", str(MEGABYTE),
                                    str(options.messages))
        with subprocess.Popen(receive, **pipes) as receiver:
            receiver.stdout.readline()
            with subprocess.Popen(send, **pipes) as sender:
                try:
                    self._expect(sender, "warm")
                    sender.stdin.write("go\n")
                    sender.stdin.flush()
                    if cut:
                        while sum(map(self._passed, range(rails))) < options.messages * MEGABYTE / 4:
                            pass
                        self.cluster.run("switch", "ip", "link", "set", "n1r1", *cut)
                    words = self._expect(sender, "sent")
                    self.goodput = int(words[1]) / float(words[2])
                    sender.communicate(timeout=PATIENCE_SECONDS)
                    gap, _ = receiver.communicate(timeout=PATIENCE_SECONDS)
                    self.gap_ms = float(gap.split()[1]) * 1000
                finally:
                    for process in (sender, receiver):
                        process.kill()

    @staticmethod
    def _expect(process, word):
        words = process.stdout.readline().split()
        if not words or words[0] != word:
            raise RuntimeError(f"no '{word}': the transfer failed")
        return words

    def _passed(self, rail):
        return self.cluster.links("switch")[f"n1r{rail}"]["stats64"]["tx"]["bytes"]


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--program", required=True, help="the program goodput")
    made.add_argument("--repetitions", type=int, default=5, help="(default: %(default)s)")
    made.add_argument("--messages", type=int, default=400, help="of 1 MB in each run (default: %(default)s)")
    made.add_argument("--links", default="packet,udp", help="(default: %(default)s)")
    made.add_argument("--rails", default="2,4", help="(default: %(default)s)")
    options = made.parse_args()
    virtual_nodes.require()
    print(f"{'link':8}{'rails':>6}{'cut':>8}{'MB/s':>8}{'gap ms':>8}{'longest':>9}")
    for link in options.links.split(","):
        for rails in map(int, options.rails.split(",")):
            for how, cut in CUTS.items():
                runs = [Run(options, rails, link, cut) for _ in range(options.repetitions)]
                gaps = [run.gap_ms for run in runs]
                print(f"{link:8}{rails:6}{how:>8}{statistics.median(run.goodput for run in runs) / 10**6:8.1f}"
                      f"{statistics.median(gaps):8.1f}{max(gaps):9.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
