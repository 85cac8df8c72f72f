"""The virtual machines of a user: cluster-machine, run as this user, keeps them, so that they are those of the command line."""
import json
import os

from cluster_machine_lib import store
from clusterd_lib.errors import AgentError

from . import commands

_COMMAND = ("/usr/bin/python3", "-B", os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "cluster-machine"))


class Machines:
    """`run(user, *words)` is awaited; it returns what the command has said."""

    def __init__(self, run=None):
        self._run = run or (lambda user, *words: commands.run_as(user, *_COMMAND, *words, name="cluster-machine"))

    async def of(self, user):
        """Name -> nodes, by name. The user's own program has said it: it is checked again."""
        try:
            found = json.loads(await self._run(user, "--json"))
            return {name: list(found[name])[:store.NODES_MAX] for name in sorted(found)
                    if store.is_machine_name(name) and all(isinstance(node, str) and store.is_name(node) for node in found[name])}
        except (ValueError, TypeError) as error:
            raise AgentError("cluster-machine has given no list of machines") from error

    async def nodes_of(self, user, name):
        found = (await self.of(user)).get(name)
        if not found:
            raise AgentError(f"you have no machine '{name}'")
        return found

    async def save(self, user, name, nodes):
        if not store.is_machine_name(name):
            raise AgentError("a machine's name has up to 32 letters, digits and . _ - and begins with a letter or a digit")
        if not nodes:
            raise AgentError("choose nodes first")
        await self._run(user, name, *nodes)

    async def remove(self, user, name):
        if not store.is_machine_name(name):
            raise AgentError("there is no such machine")
        await self._run(user, name, "--remove")
