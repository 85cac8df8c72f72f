#!/usr/bin/env python3
"""Two virtual nodes. The members of a ring group on one of them join, leave and are killed, two at the same time, while all of
them exchange checked messages with a process on the other: chaos_test.py --build BUILD --program ring_chaos

It fails if a byte is wrong, if a message gets no answer or that of another process, if a member has no ring, or if anything is
left in the kernel after all members were killed. It prints how long messages took at the events."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

END_SECONDS = 120
GONE_SECONDS = 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--members", type=int, default=64, help="processes with an endpoint (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=180, help="how long members come and go (default: %(default)s)")
    parser.add_argument("--every", type=int, default=20, help="milliseconds between two events (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--link", choices=("auto", "udp"), default="auto", help="udp: to compare, members without rings (default: %(default)s)")
    parser.add_argument("--without", type=int, default=0, help="so many members may have no ring: where processes wait too long for a "
                        "processor (default: %(default)s)")
    return parser.parse_args()


class Chaos:
    def __init__(self, options):
        self.options, self.cluster = options, virtual_nodes.make(2)
        self.environment = virtual_nodes.of_provider(os.path.join(os.path.abspath(options.build), "prov", "cluster"), FI_LOG_LEVEL="warn",
                                                       FI_CLUSTER_LINK=options.link)

    def start(self, node, log, *words):
        command = [*self.cluster.command(node), os.path.abspath(self.options.program), *words]
        return virtual_nodes.start(command, self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def rings(self):
        """How many sockets of rings are in the kernel of the second node."""
        return len(self.cluster.sockets(2, "packet"))

    def run(self, log):
        options = self.options
        server = self.start(1, log, "serve")
        name = server.stdout.readline().split()[1]
        crowd = self.start(2, log, "members", *(str(number) for number in (options.members, options.seconds, options.every, options.seed)),
                           name)
        if crowd.stdout.readline() != f"members {options.members}\n":
            return "the members failed"
        if options.link == "auto" and self.rings() < 2 * options.members:
            return f"{options.members} members have {self.rings()} rings"
        report, _ = crowd.communicate(timeout=END_SECONDS)
        print(report, end="")
        end = time.monotonic() + GONE_SECONDS
        while self.rings() and time.monotonic() < end:
            time.sleep(0.1)
        if self.rings():
            return f"{self.rings()} rings are left after all members were killed"
        if crowd.returncode != 0 or server.poll() is not None:
            return f"the members ended with {crowd.returncode}, the server with {server.poll()}"
        server.kill()
        return ""


def main():
    options = arguments()
    virtual_nodes.require()
    with tempfile.TemporaryFile("w+") as log:
        failure = Chaos(options).run(log)
        log.seek(0)
        lines = log.read()
    without = [line for line in lines.splitlines() if "has no receive ring" in line]
    print(f"{len(without)} members without a ring")
    if not failure and len(without) > options.without:
        failure = f"{len(without)} members have no ring: {without[0]}"
    if failure:
        sys.exit(f"chaos_test: {failure}\n{lines[-4000:]}")
    print("no wrong byte, no message without its answer, nothing is left")


main()
