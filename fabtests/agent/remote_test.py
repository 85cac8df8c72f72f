"""Commands of users on other nodes: how many one user may run."""
import asyncio
import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "util"))
from clusterd_lib import remote, roles  # noqa: E402
from clusterd_lib.errors import AgentError  # noqa: E402

ONE, OTHER = "daemon", "nobody"


@unittest.skipUnless(os.geteuid() == 0, "only root starts commands as their users")
class Commands(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        operations = types.SimpleNamespace(add=lambda *_, **__: None)
        self.remote = remote.Remote(types.SimpleNamespace(operations=operations, roles=types.SimpleNamespace(of=lambda _: roles.SUBMIT)))

    async def run_as(self, user, command):
        return await self.remote._run(None, {"user": user, "command": command})  # pylint: disable=protected-access

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
