"""Virtual nodes with a bad network between them, for tests and measurements."""
import argparse
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "vcluster"))
import nodes  # noqa: E402

LOSSES = ("1%", "5%", "10%")
# Besides losses. Connections of launchers are spared: what is tried is the provider.
OTHERS = ("--reorder", "2%", "--duplicate", "1%", "--corrupt", "0.2%", "--only", "udp")


def parser(text):
    made = argparse.ArgumentParser(description=text)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--link", choices=("packet", "udp"), default="udp", help="(default: %(default)s)")
    return made


def environment(options):
    """Ours, with this provider and no other settings of libfabric and MPI."""
    values = {name: value for name, value in os.environ.items() if not name.startswith(("FI_", "OMPI_"))}
    return {**values, "FI_PROVIDER_PATH": os.path.abspath(options.provider), "FI_PROVIDER": "cluster",
            "FI_CLUSTER_LINK": options.link}


def prepare(*programs):
    """Leaves the test with a reason if something is missing that does not belong to the tree."""
    nodes.prepare()
    for program in ("clang", *programs):
        if shutil.which(program) is None:
            nodes.skip(f"needs {program}")


class Network:
    """The nodes of one test."""

    def __init__(self, count, *options):
        self.name = nodes.make(count, *options)
        self.executing = [sys.executable, nodes.VCLUSTER, "exec", "--name", self.name]

    def faults(self, *options):
        result = nodes.vcluster("faults", "--name", self.name, *options, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip())
        return result.stdout

    def happened(self, *options):
        """Counts of all places together."""
        total = {}
        for place in json.loads(self.faults("--list", "--json", *options)):
            for name, count in place["counts"].items():
                total[name] = max(total.get(name, 0), count) if name.endswith("_ns") else total.get(name, 0) + count
        return total

    def address(self, node):
        listed = json.loads(nodes.vcluster("list", "--json", capture_output=True).stdout)
        return next(entry for entry in listed if entry["name"] == self.name)["nodes"][node - 1]["addresses"][0]


def under_each_loss(network, run):
    """Calls run() under growing losses; it returns a reason if it failed. Exit status of the test."""
    failed = False
    for loss in LOSSES:
        network.faults("--loss", loss, *OTHERS)
        reason = run()
        happened = network.happened()
        print(f"{loss} loss: {happened}")
        if reason is None and not all(happened[name] for name in ("lost", "reordered", "duplicated")):
            reason = "the network was not as bad as it should have been"
        if reason:
            print(f"FAIL under {loss} loss: {reason}")
            failed = True
    return 1 if failed else 0
