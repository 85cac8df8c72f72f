#!/usr/bin/env python3
"""Runs libfabric's own fabtests over `cluster`, and kills no process that it did not start.

The programs are built elsewhere, from any version of libfabric. They run on two virtual nodes, both
in one, or on loopback. Exit status 0: every test that is not excluded passed or says itself that
what it needs is not offered.
"""
import argparse
import os
import re
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import server_client  # noqa: E402
import verdicts  # noqa: E402
import test_list  # noqa: E402

COMPLETION = {"spin": "", "sread": "-c sread", "fd": "-c fd", "counter": "-t counter"}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fabtests", required=True, metavar="DIR", help="where the programs are, at any depth")
    parser.add_argument("--plugin", metavar="DIR", help="where libcluster-fi.so is (default: FI_PROVIDER_PATH)")
    parser.add_argument("--on", choices=("nodes", "node", "loopback"), default="nodes",
                        help="two virtual nodes, both programs in one, or this machine's loopback")
    parser.add_argument("--sets", default="quick",
                        help="quick, all, or some of " + ", ".join(test_list.SETS) + ", with commas between")
    parser.add_argument("--only", metavar="PATTERN", help="only lines that match")
    parser.add_argument("--exclude", metavar="FILE", default=os.path.join(HERE, "..", "cluster.exclude"))
    parser.add_argument("--config", metavar="FILE", default=os.path.join(HERE, "..", "cluster.test"),
                        help="for fi_ubertest")
    parser.add_argument("--completion", choices=COMPLETION, default="spin", help="how programs wait")
    parser.add_argument("--progress", choices=("manual", "auto"), help="what they ask for")
    parser.add_argument("--link", choices=("auto", "packet", "udp"), default="auto")
    parser.add_argument("--cluster", metavar="NAME",
                        help="a cluster of util/vcluster instead of nodes of its own: `vcluster faults` may lose frames")
    parser.add_argument("--layered", action="store_true",
                        help="run over ofi_rxm, which uses connections of the provider, what ofi_rxm can offer")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="for one test")
    parser.add_argument("--iterations", type=int, metavar="N", help="instead of a program's own number")
    parser.add_argument("--list", action="store_true", help="print the lines and run nothing")
    return parser.parse_args(arguments)


def find_programs(directory):
    """Name -> path. Where libtool has left a wrapper and the program itself, the wrapper."""
    found = {}
    for folder, _, names in os.walk(directory):
        if os.path.basename(folder) in (".libs", ".deps"):
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name not in found and os.access(path, os.X_OK) and "." not in name:
                found[name] = path
    return found


class Runner:
    def __init__(self, options, place):
        self.options = options
        self.place = place
        self.programs = find_programs(options.fabtests)
        self.table = verdicts.Table()
        self.excludes = verdicts.Excludes(options.exclude)
        # Debian's libfabric brings psm3, which else ends every process at a signal with a report of its own.
        self.environment = {"FI_CLUSTER_LINK": options.link, "IPATH_NO_BACKTRACE": "1"}
        self.provider = "cluster"
        if options.layered:
            self.provider = "cluster;ofi_rxm"
            self.environment["FI_CLUSTER_TEST_LAYERS"] = "yes"
        if options.plugin:
            self.environment["FI_PROVIDER_PATH"] = os.path.abspath(options.plugin)

    def extras(self):
        words = COMPLETION[self.options.completion].split()
        if self.options.progress:
            words += ["--data-progress", self.options.progress]
        if self.options.iterations:
            words += ["-I", str(self.options.iterations)]
        return words

    def commands(self, kind, line):
        """(node, command) of each process; the first is the server."""
        place = self.place
        words = line.replace("SERVER", place.server_address).replace("GOOD", place.server_address).split()
        base = [self.programs[words[0]], *words[1:]]
        if kind == "uber":
            return [(place.server, base + ["-x"]),
                    (place.client, base + ["-u", self.options.config, place.server_address])]
        base += ["-p", self.provider]
        if kind == "three":
            one = base + ["-n", "3", "-s", place.server_address]
            return [(place.server, one), (place.client, one), (place.server, one)]
        if kind != "pair":
            return [(place.server, base)]
        base += self.extras()
        return [(place.server, base + ["-s", place.server_address]),
                (place.client, base + ["-s", place.client_address, place.server_address])]

    def run(self, kind, line):
        if self.options.completion == "counter" and any(re.match(p, line) for p in test_list.NOT_COUNTING):
            return self.table.add(line, verdicts.NOT_RUN, "it cannot count")
        result, remark, seconds, outputs = verdicts.UNKNOWN, "no such program", 0.0, ()
        for spelled in test_list.spellings(line):
            if spelled.split()[0] in self.programs:
                begin = time.monotonic()
                statuses, outputs = self.processes(kind, spelled, begin + self.options.timeout * test_list.times_longer(line))
                result, remark = verdicts.verdict(kind, statuses, outputs)
                seconds = time.monotonic() - begin
            if result != verdicts.UNKNOWN:
                break
        return self.table.add(line, result, remark, seconds, outputs)

    def processes(self, kind, line, deadline):
        """Exit status and output of each process of a line."""
        children, files = [], []
        try:
            for node, command in self.commands(kind, line):
                files.append(tempfile.TemporaryFile("w+", errors="replace"))
                children.append(self.place.start(node, command, self.environment, files[-1]))
                if len(children) == 1 and kind in ("pair", "three", "uber"):
                    self.place.wait_for_server(children[0])
            statuses = [None] * len(children)
            for index in reversed(range(len(children))):
                statuses[index] = server_client.finish(children[index], deadline)
                if statuses[index] != 0:  # the others would wait for it until their time is over
                    deadline = min(deadline, time.monotonic() + 5)
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                    child.wait()
        outputs = []
        for file in files:
            file.seek(0)
            outputs.append(file.read())
            file.close()
        return statuses, outputs


def main(arguments):
    options = parse(arguments)
    # A shell that starts this in the background has SIGINT ignored, and sighandler_test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    lines = [(kind, line) for _, kind, line in test_list.wanted(options.sets)]
    if test_list.has_unit(options.sets):
        lines += [("alone", line) for line in test_list.unit_programs(find_programs(options.fabtests).values())]
    lines = [(kind, line) for kind, line in lines if not options.only or re.search(options.only, line)]
    if options.layered:
        lines = [(kind, line) for kind, line in lines if test_list.layers(kind, line)]
    if options.list:
        for kind, line in lines:
            print(f"{kind:<8} {line}")
        return 0
    if options.on != "loopback":
        server_client.virtual_nodes.require()
    runner = Runner(options, server_client.Placement(options.on, options.cluster))
    for kind, line in lines:
        if runner.excludes.match(line):
            runner.table.add(line, verdicts.EXCLUDED)
        else:
            runner.run(kind, line)
    return runner.table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
