#!/usr/bin/env python3
"""cluster-key: every process of a job makes the same key, of a secret that others cannot read; and vcluster mpirun --key."""
import contextlib
import hashlib
import hmac
import importlib.machinery
import importlib.util
import io
import os
import stat
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import virtual_nodes  # noqa: E402

COMMAND = os.path.join(os.path.dirname(virtual_nodes.TOOL), "cluster-key")
# As launchers of other kinds set them; the tests run without.
LAUNCHERS = ("SLURM_JOB_ID", "FLUX_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PMIX_NAMESPACE", "PMI_JOBID")

_LOADER = importlib.machinery.SourceFileLoader("cluster_key", COMMAND)
PROGRAM = importlib.util.module_from_spec(importlib.util.spec_from_loader("cluster_key", _LOADER))
_LOADER.exec_module(PROGRAM)


class ClusterKey(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.secret = os.path.join(self.directory, "made", "secret")
        self.assertEqual(self.run_command("--make-secret").returncode, 0)

    def run_command(self, *words, secret=None, **variables):
        """In this process; what has become of it, as of a process."""
        environment = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
        with mock.patch.dict(os.environ, {**environment, **variables}, clear=True), \
                contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                status = PROGRAM.main(["--secret", secret or self.secret, *words])
            except SystemExit as end:
                status = end.code
        return types.SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=errors.getvalue())

    def key(self, *words, **variables):
        result = self.run_command(*words, **variables)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.strip()

    def assert_refused(self, result, words, status=1):
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_the_relay_key_follows_from_the_key_of_the_job(self):
        relay_key = self.key("--job", "1", "--relay")
        job = hmac.new(b"cluster provider, seal version 1", bytes.fromhex(self.key("--job", "1")), hashlib.sha256).digest()
        self.assertEqual(relay_key, hmac.new(job, b"relay\x01", hashlib.sha256).hexdigest())
        self.assertNotEqual(relay_key, self.key("--job", "2", "--relay"))
        self.assert_refused(self.run_command("--job", "1", "--relay", "program"), "not both", 2)

    def test_a_key_is_hmac_of_the_name_of_the_job(self):
        with open(self.secret, encoding="ascii") as file:
            secret = bytes.fromhex(file.read().strip())
        self.assertEqual(len(secret), 32)
        expected = hmac.new(secret, b"cluster job key\0job=some", hashlib.sha256).hexdigest()
        self.assertEqual(self.key("--job", "some"), expected)

    def test_jobs_are_known_by_their_launchers(self):
        keys = [self.key(**{variable: "17"}) for variable in LAUNCHERS]
        keys += [self.key(SLURM_JOB_ID="18"), self.key("--job", "17")]
        self.assertEqual(len(set(keys)), len(keys), "two jobs have one key")
        self.assertEqual(self.key(SLURM_JOB_ID="17", PMIX_NAMESPACE="a.0", PMI_JOBID="17.0"), keys[0], "a step has its own key")
        self.assertEqual(self.key("--job", "17", SLURM_JOB_ID="1"), keys[-1])
        self.assert_refused(self.run_command(), "no launcher has named the job")

    def test_another_secret_makes_other_keys(self):
        other = os.path.join(self.directory, "other")
        self.run_command("--make-secret", secret=other)
        self.assertNotEqual(self.key("--job", "a"), self.key("--job", "a", secret=other))

    def test_a_secret_is_never_written_over(self):
        before = self.key("--job", "a")
        self.assert_refused(self.run_command("--make-secret"), "exists already")
        self.assertEqual(self.key("--job", "a"), before)
        self.assertEqual(stat.S_IMODE(os.stat(self.secret).st_mode), 0o600)
        self.assertEqual(os.listdir(os.path.dirname(self.secret)), ["secret"])

    def test_secrets_that_others_reach_are_refused(self):
        link = os.path.join(self.directory, "link")
        os.symlink(self.secret, link)
        self.assert_refused(self.run_command("--job", "a", secret=link), "symbolic link")
        self.assert_refused(self.run_command("--job", "a", secret=self.directory), "not a regular file")
        self.assert_refused(self.run_command("--job", "a", secret=self.secret + ".none"), "No such file")
        os.chmod(self.secret, 0o640)
        self.assert_refused(self.run_command("--job", "a"), 'others may read or write it: run "chmod 600 ')
        os.chmod(self.secret, 0o600)
        for text in ("", "0" * 31, "0" * 30, "0" * 130, "x" * 64):
            with open(self.secret, "w", encoding="ascii") as file:
                file.write(text)
            self.assert_refused(self.run_command("--job", "a"), "not 32 to 128 hexadecimal digits")
        if os.geteuid() == 0:
            os.chown(self.secret, 1, 1)
            self.assert_refused(self.run_command("--job", "a"), "belongs to another user")

    def test_a_file_is_its_owners_alone(self):
        out, elsewhere = (os.path.join(self.directory, name) for name in ("key", "elsewhere"))
        os.symlink(elsewhere, out)
        self.assertEqual(self.key("--job", "a", "--out", out), "")
        self.assertFalse(os.path.islink(out) or os.path.exists(elsewhere), "a link was followed")
        self.assertEqual(stat.S_IMODE(os.stat(out).st_mode), 0o600)
        with open(out, encoding="ascii") as file:
            self.assertEqual(file.read().strip(), self.key("--job", "a"))
        if os.geteuid() == 0:
            self.key("--job", "a", "--out", out, "--owner", "1")
            self.assertEqual(os.stat(out).st_uid, 1)
        self.assertEqual(sorted(os.listdir(self.directory)), ["key", "made"])

    def test_a_program_is_run_with_it(self):
        shows = 'echo "$FI_CLUSTER_KEY" "$FI_CLUSTER_KEY_FILE"; exit 3'
        shown = subprocess.run([COMMAND, "--secret", self.secret, "--job", "a", "sh", "-c", shows], capture_output=True,
                               text=True, check=False, timeout=60, env={**os.environ, "FI_CLUSTER_KEY_FILE": "/not/this"})
        self.assertEqual((shown.returncode, shown.stdout.strip()), (3, self.key("--job", "a")))
        self.assert_refused(self.run_command("--job", "a", "no-such-program"), "no-such-program", 127)

    def test_options_that_do_not_go_together(self):
        for words in (["--make-secret", "true"], ["--out", "a", "true"], ["--owner", "0"], ["--out", "a", "--owner", "no-such-user"]):
            self.assert_refused(self.run_command(*words), 'see "cluster-key --help"', 2)


class KeyOfAJob(unittest.TestCase):
    """Ranks need no MPI to look at their environment."""

    def test_ranks_have_a_key_of_the_job(self):
        if not virtual_nodes.available():
            self.skipTest("no virtual nodes here")
        virtual_nodes.require("mpirun")
        cluster = virtual_nodes.shared()
        looks = 'stat -c "%a %u" "$FI_CLUSTER_KEY_FILE"; cat "$FI_CLUSTER_KEY_FILE"; echo "$FI_CLUSTER_KEY_FILE"'
        seen = []
        for _ in range(2):
            result = virtual_nodes.vcluster("mpirun", "--name", cluster.name, "--key", "--on", "node1,node2", "-np", "2",
                                            "sh", "-c", f"x=$({looks}); echo $x", capture_output=True, timeout=100)
            self.assertEqual(result.returncode, 0, result.stderr)
            mode, owner, key, path = result.stdout.splitlines()[0].split()
            self.assertEqual(result.stdout.splitlines(), [f"{mode} {owner} {key} {path}"] * 2, "ranks have two keys")
            self.assertEqual((mode, owner, len(key)), ("600", "0", 64))
            self.assertFalse(os.path.exists(path), "the file outlives the job")
            seen.append(key)
        self.assertNotEqual(*seen, "two jobs have one key")


if __name__ == "__main__":
    unittest.main(verbosity=2)
