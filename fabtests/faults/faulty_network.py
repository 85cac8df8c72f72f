"""Programs over a network with injected faults: what tests and measurements share."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

LOSSES = ("1%", "5%", "10%")
# In addition to loss. TCP is exempt: launchers use it, and the provider is what is tested.
OTHERS = ("--reorder", "2%", "--duplicate", "1%", "--corrupt", "0.2%", "--only", "udp")


def parser(text):
    made = argparse.ArgumentParser(description=text)
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--link", choices=("packet", "udp"), default="udp", help="(default: %(default)s)")
    return made


def environment(options, link=None):
    return virtual_nodes.of_provider(options.provider, FI_CLUSTER_LINK=link or options.link)


def require(*programs):
    virtual_nodes.require("clang", *programs)


def total(counts):
    """The counts of all places together: the largest of each time, the sum of everything else."""
    return {name: (max if name.endswith("_ns") else sum)(place.get(name, 0) for place in counts)
            for name in {name for place in counts for name in place}}


def under_each_loss(cluster, run, losses=LOSSES):
    """Calls run() under growing loss; it returns why it failed, or None. Returns the exit status of the test."""
    failed = False
    for loss in losses:
        cluster.faults("--loss", loss, *OTHERS)
        failure = run()
        happened = total(cluster.fault_counts())
        print(f"{loss} loss: {happened}")
        if failure is None and not all(happened[name] for name in ("lost", "reordered", "duplicated")):
            failure = "some kind of fault did not happen"
        if failure:
            print(f"FAIL under {loss} loss: {failure}")
            failed = True
    return 1 if failed else 0
