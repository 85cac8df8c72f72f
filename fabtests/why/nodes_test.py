#!/usr/bin/env python3
"""Real jobs of Open MPI over two virtual nodes that make no progress: cluster-why names the cause, whether it asks the agents or
the nodes themselves.

    nodes_test.py --build DIRECTORY --program stuck_ranks
"""
import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "mpi")]
import virtual_nodes  # noqa: E402
from mpi_libraries import LIBRARIES  # noqa: E402

WHY = os.path.join(os.path.dirname(virtual_nodes.TOOL), "cluster-why")
RANKS, SECONDS_MAX = 4, 40
OPTIONS = None


class Job:
    """Four ranks on two nodes."""

    def __init__(self, cluster, how):
        words = ["--on", "node1,node2", "-np", str(RANKS), *LIBRARIES["openmpi4"].words["cluster"], "--mca", "osc", "pt2pt,sm",
                 "--mca", "mpi_yield_when_idle", "1", OPTIONS.program, how]
        environment = virtual_nodes.of_provider(os.path.join(OPTIONS.build, "prov", "cluster"))
        self.process = subprocess.Popen(cluster.mpirun(*words), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        lines = [self.process.stdout.readline() for _ in range(RANKS)]
        found = [re.fullmatch(r"rank (\d) process (\d+)\n", line) for line in lines]
        self.processes = {int(match.group(1)): int(match.group(2)) for match in found if match}
        if len(self.processes) != RANKS:
            self.end()
            raise RuntimeError(f"the job has not begun: {lines}")

    def end(self):
        for pid in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class StuckJobs(unittest.TestCase):
    """`cluster` is that of the class."""

    def start(self, how):
        job = Job(self.cluster, how)
        self.addCleanup(job.end)
        return job

    def why(self, *words, node=1):
        """The environment is that of `vcluster exec`."""
        environment = {**os.environ, "VCLUSTER_NAME": self.cluster.name, "VCLUSTER_NODE": f"node{node}"}
        program = os.path.join(OPTIONS.build, "util", "info", "cluster-info")
        result = subprocess.run(self.cluster.command(node, sys.executable, "-B", WHY, *words, *(["--cluster-info", program] if words else [])),
                                capture_output=True, text=True, check=False, timeout=SECONDS_MAX, env=environment)
        return result.stdout + result.stderr

    def until(self, pattern, *words, **options):
        """What it says once that matches."""
        end, said = time.monotonic() + SECONDS_MAX, ""
        while time.monotonic() < end:
            said = self.why(*words, **options)
            match = re.search(pattern, said)
            if match:
                return said
            time.sleep(0.5)
        self.fail(f"not within {SECONDS_MAX} s: {pattern}\n{said}")
        return None


class Jobs(StuckJobs):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.shared(2)

    def test_a_stopped_rank(self):
        job = self.start("forever")
        stopped = job.processes[3]
        os.kill(stopped, signal.SIGSTOP)
        launcher = str(job.process.pid)
        said = self.until(r"^Rank 3 on node2 has made no call for [\d.]+ s: stopped by SIGSTOP; 3 ranks wait for it\.\n", launcher)
        self.assertIn(f"To continue: on node2: kill -CONT {stopped}\n", said)
        self.assertRegex(said, r"(?m)^  rank \d on node\d has waited .* for rank 3 on node2 to ")
        os.kill(stopped, signal.SIGCONT)
        self.until("^No rank waits for another", launcher)

    def test_a_missing_receive_through_agents(self):
        self.start("receive")
        try:
            self.cluster.set_agents(True)
        except RuntimeError as error:
            self.skipTest(str(error))
        self.addCleanup(self.cluster.set_agents, False)
        said = self.until(r"^Rank 3 on node2 has posted no receive that matches a message of rank 0 on node1 \(send of 1048576 bytes, tag 5\), "
                          r"but waits for .*; 3 ranks wait for it", node=2)
        self.assertNotIn("was not asked", said)
        listed = self.why("--list", node=2)
        self.assertRegex(listed, r"^\d+: 4 processes of stuck_ranks on node1 node2, started by mpirun \d+ orted \d+\n$")
        self.assertEqual(self.why(listed.partition(":")[0])[:15], said[:15], "by the name that is listed")

    def test_a_rank_that_sleeps(self):
        job = self.start("sleep")
        self.until(r"^Rank 3 on node2 has made no call for [\d.]+ s: it sleeps in the kernel \(\w+\); 3 ranks wait for it", str(job.processes[0]))

    def test_locks_of_two_windows(self):
        job = self.start("windows")
        self.until(r"^Rank 0 on node1 and rank 3 on node2 have open windows and make calls, but get no message", str(job.processes[2]), node=2)


class Cuts(StuckJobs):
    @classmethod
    def setUpClass(cls):
        cls.cluster = virtual_nodes.make(2, "--rails", "2", "--agents", "--no-page", suffix="-cuts")

    def cut(self, port):
        self.cluster.run("switch", "ip", "link", "set", port, "down")
        self.addCleanup(self.cluster.run, "switch", "ip", "link", "set", port, "up")

    def test_the_rail_of_the_launcher_then_the_whole_node(self):
        """The provider and the agents go on over the other rail."""
        self.start("finalize")
        self.cut("n2r0")
        self.until(r"^All 4 ranks can wait for the launcher: nothing answers what (orted|mpirun) \(process \d+\) on node\d sends over TCP from "
                   r"[\d.:]+ to [\d.:]+ \(\d+ retransmissions\): is this rail cut\?\n")
        self.cut("n2r1")
        self.until(r"^Node2 has been down for [\d.]+ s \(no answer to probes\): ranks 2-3 ran there")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("only", nargs="*")
    OPTIONS = parser.parse_args()
    OPTIONS.build, OPTIONS.program = os.path.abspath(OPTIONS.build), os.path.abspath(OPTIONS.program)
    if not os.path.exists(os.path.join(OPTIONS.build, "util", "info", "cluster-info")):
        virtual_nodes.skip("cluster-info is not built (it needs CLI11)")
    virtual_nodes.require("mpirun")
    unittest.main(argv=["nodes_test", *OPTIONS.only], verbosity=2)
