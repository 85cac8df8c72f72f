#!/usr/bin/env python3
"""Keys of Slurm's jobs on two virtual nodes: the scripts in util/slurm make a key for each job and remove it when the job ends."""
import glob
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

UTIL = os.path.dirname(os.path.realpath(virtual_nodes.TOOL))
LOOKS = 'echo "$SLURM_JOB_ID $FI_CLUSTER_KEY_FILE $(stat -c "%a %u" "$FI_CLUSTER_KEY_FILE") $(cat "$FI_CLUSTER_KEY_FILE")"'


def keys():
    return glob.glob("/run/job-*.key")


class SlurmKeys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="slurm-keys-")
        cls.addClassCleanup(place.cleanup)
        secret, prolog = os.path.join(place.name, "secret"), os.path.join(place.name, "prolog")
        subprocess.run([os.path.join(UTIL, "cluster-key"), "--secret", secret, "--make-secret"], check=True, stdout=subprocess.DEVNULL)
        with open(os.open(prolog, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexec {UTIL}/slurm/prolog --secret {secret}\n")
        cls.cluster = virtual_nodes.make(2, "--slurm")
        configuration = os.path.join(virtual_nodes.state.directory(cls.cluster.name), "slurm", "etc", "slurm.conf")
        with open(configuration, "a", encoding="utf-8") as file:
            file.write(f"Prolog={prolog}\nTaskProlog={UTIL}/slurm/task_prolog\nEpilog={UTIL}/slurm/epilog\n")
        cls.cluster.run(1, "scontrol", "reconfigure")
        time.sleep(1)  # slurmd reads it when slurmctld has told it

    def nothing_is_left(self):
        deadline = time.monotonic() + 20
        while keys():
            self.assertLess(time.monotonic(), deadline, keys())
            time.sleep(0.1)

    def test_a_job_has_a_key_of_its_own_as_long_as_it_runs(self):
        seen = set()
        for _ in range(2):
            lines = self.cluster.run(1, "srun", "--nodes=2", "--ntasks=2", "sh", "-c", LOOKS).splitlines()
            self.assertEqual(len(lines), 2)
            number, path, mode, owner, key = lines[0].split()
            self.assertEqual((lines[1], path, mode, owner, len(key)), (lines[0], f"/run/job-{number}.key", "600", "0", 64))
            seen.add(key)
            self.nothing_is_left()
        self.assertEqual(len(seen), 2, "two jobs have one key")

    def test_a_cancelled_job_leaves_none(self):
        number = self.cluster.run(1, "sbatch", "--parsable", "--nodes=2", "--output=/dev/null", "--wrap", "srun sleep 600").strip()
        deadline = time.monotonic() + 20
        while keys() != [f"/run/job-{number}.key"]:
            self.assertLess(time.monotonic(), deadline, keys())
            time.sleep(0.1)
        self.cluster.run(1, "scancel", number)
        self.nothing_is_left()


if __name__ == "__main__":
    virtual_nodes.require("ip", "slurmctld", "slurmd", "munged")
    unittest.main(verbosity=2)
