"""Commands of users on other nodes: how many one user may run, and how all that belongs to a job ends."""
import asyncio
import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib import accounts, job_group, query, remote, roles  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402

ONE, OTHER = "daemon", "nobody"


@unittest.skipUnless(os.geteuid() == 0, "only root starts commands as their users")
class Commands(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        operations = types.SimpleNamespace(add=lambda *_, **__: None)
        self.remote = remote.Remote(types.SimpleNamespace(
            operations=operations, roles=types.SimpleNamespace(of=lambda _: roles.SUBMIT), settings=types.SimpleNamespace(name="node1"),
            ask_node=mock.AsyncMock(side_effect=AgentError("node2 is down"))))

    async def run_as(self, user, command, job=""):
        return await self.remote._run(None, {"user": user, "command": command, "job": job})  # pylint: disable=protected-access

    async def end(self, uid, **request):
        return await self.remote._end_job_on(query.Caller(uid=uid), request)  # pylint: disable=protected-access

    async def left_behind(self, user, job):
        """A command that has ended, and a child of it in a session of its own."""
        with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
            os.chmod(file.name, 0o666)
            await self.run_as(user, f"setsid sleep 60 & echo $! > {file.name}", job)
            return int(file.read())

    async def is_gone(self, process):
        for _ in range(500):
            try:
                with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        return True
            except OSError:
                return True
            await asyncio.sleep(0.01)
        return False

    async def sleeps(self, process):
        """The shell that was left behind becomes a sleep after a moment."""
        for _ in range(100):
            with open(f"/proc/{process}/comm", encoding="ascii") as file:
                if file.read() == "sleep\n":
                    return True
            await asyncio.sleep(0.01)
        return False

    async def test_what_a_job_leaves_on_a_node_ends_with_it(self):
        for place in (job_group._place, lambda: None):  # pylint: disable=protected-access
            with mock.patch.object(job_group, "_place", place):
                mine, other_job, other_user = [await self.left_behind(*words) for words in ((ONE, "7"), (ONE, "8"), (OTHER, "7"))]
                with self.assertRaisesRegex(AgentError, "only root"):
                    await self.end(1, user=ONE, job="7", nodes=["node1"])
                self.assertEqual(await self.end(0, user=ONE, job="7", nodes=["node1", "node2"]), ["node2"])
                self.assertTrue(await self.is_gone(mine))
                for process in (other_job, other_user):
                    self.assertTrue(await self.sleeps(process))
                await self.end(0, user=ONE, job="8", nodes=["node1"])
                await self.end(0, user=OTHER, job="7", nodes=["node1"])

    async def test_systemd_gets_words_and_variables_as_they_are(self):
        account = accounts.find(ONE)
        with mock.patch.dict(os.environ, {"CLUSTER_JOBS_BY_SYSTEMD": "yes"}), tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "environment")
            with job_group.started(account, "7", ["/bin/echo", "$HOME", "%n"], {"SECRET": 'a"$b\\`'}, path) as (words, options):
                pass
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            with open(path, encoding="utf-8") as file:
                self.assertIn('SECRET="a\\"\\$b\\\\\\`"\n', file.read())
            self.assertNotIn("SECRET", " ".join(words), "every user can see them")
            self.assertNotIn("env", options)
            self.assertEqual((words[0], words[-4:]), ("systemd-run", ["--", "/bin/echo", "$$HOME", "%n"]))
            self.assertRegex(" ".join(words), f" --unit=cluster-job-{account.pw_uid}-7-[0-9a-f]+ --uid={ONE} .*EnvironmentFile={path} ")
            with job_group.started(account, "", ["/bin/sh", "-c", "true"], {}) as (words, _):
                self.assertIn("--property=ExitType=cgroup", words)

    async def test_commands_are_noted_with_their_user(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            await self.run_as(ONE, "true", "7")
        self.assertIn('"event": "command", "user": "daemon", "job": "7"}', said.getvalue())

    async def test_a_job_is_a_number(self):
        for job in ("", "../x", "1/2", "\u00b2", "-1", "1" * 16):
            self.assertFalse(job_group.is_number(job), job)

    async def test_one_user_leaves_places_for_others(self):
        with mock.patch.object(remote, "RUNNING_MAX", 3), mock.patch.object(remote, "BEGIN_SECONDS", 0.01):
            running = [await self.run_as(ONE, "exec sleep 60") for _ in range(3)]
            with self.assertRaisesRegex(AgentError, f"3 commands of {ONE} are running"):
                await self.run_as(ONE, "exec sleep 60")
            running.append(await self.run_as(OTHER, "exec sleep 60"))
            os.kill(running.pop(), 9)
            os.kill(running.pop(), 9)
            while True:
                try:
                    running.append(await self.run_as(ONE, "exec sleep 60"))
                    break
                except AgentError:
                    await asyncio.sleep(0.01)
            for process in running:
                os.kill(process, 9)


if __name__ == "__main__":
    unittest.main()
