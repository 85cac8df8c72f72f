"""The command that runs when a node's state changes, one at a time and in order. Node names follow the rules of host
names (wire.py), so the command cannot mistake one for an option."""
import asyncio
import os

SECONDS_MAX = 30
WAITING_MAX = 1000


class Hook:
    def __init__(self, command, failed):
        self._command, self._failed = command, failed
        self._queue = asyncio.Queue(WAITING_MAX)

    def notify(self, change):
        if not self._command:
            return
        try:
            self._queue.put_nowait(change)
        except asyncio.QueueFull:
            self._failed(f"{WAITING_MAX} changes of state wait for {self._command}: it does not run for {change.name} {change.new}")

    async def run(self):
        while True:
            change = await self._queue.get()
            environment = {**os.environ, "CLUSTERD_NODE": change.name, "CLUSTERD_STATE": change.new,
                           "CLUSTERD_OLD_STATE": change.old, "CLUSTERD_REASON": change.reason}
            try:
                process = await asyncio.create_subprocess_exec(
                    self._command, change.name, change.new, stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL, env=environment)
                try:
                    status = await asyncio.wait_for(process.wait(), SECONDS_MAX)
                    if status:
                        self._failed(f"{self._command} ended with status {status} for {change.name} {change.new}")
                except asyncio.TimeoutError:
                    process.kill()
                    await process.wait()
                    self._failed(f"{self._command} was ended after {SECONDS_MAX} s for {change.name} {change.new}")
            except OSError as error:
                self._failed(f"{self._command}: {error.strerror}")
