"""Children that cannot outlive this process, and their output."""
import os
import queue
import re
import subprocess
import threading
import time

from cluster_lib.processes import die_with_parent

from .errors import Skipped


class Child:
    """A started program whose output is collected. It reads `told`, if there is any, on its standard input, which then stays open."""

    def __init__(self, command, environment, told=""):
        self.name = os.path.basename(next((word for word in command if re.search("_perf|ucx|mpi_check$", word)), command[0]))
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE if told else None, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent, cwd="/tmp")
        if told:
            self.process.stdin.write(told)
            self.process.stdin.flush()
        self.lines = queue.Queue()
        self.output_lines, self.error_lines = [], []
        self._readers = [threading.Thread(target=self._read, args=(self.process.stdout, self.output_lines, True), daemon=True),
                         threading.Thread(target=self._read, args=(self.process.stderr, self.error_lines, False), daemon=True)]
        for reader in self._readers:
            reader.start()

    def _read(self, stream, into, announce):
        for line in stream:
            into.append(line.rstrip("\n"))
            if announce:
                self.lines.put(into[-1])
        if announce:
            self.lines.put(None)

    def wait_for_line(self, start, seconds):
        """The first line with this beginning; raises Skipped if the program ends before it prints one."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise Skipped(f"{self.name} did not start within {seconds} s") from None
            if line is None:
                self.finish(5)
                raise Skipped(self.failure_reason())
            if line.startswith(start):
                return line

    def finish(self, seconds):
        """The exit status; kills a program that does not end in time and returns None."""
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        for reader in self._readers:
            reader.join(timeout=2)
        return status

    def failure_reason(self):
        status = self.process.returncode
        # Open MPI frames its messages with lines of dashes.
        lines = [line.strip() for line in self.error_lines if line.strip(" -\t=*")] or self.output_lines
        own = [line for line in lines if line.startswith(f"{self.name}: ") or " ERROR " in line]
        if status in (1, 2, 3) and own:
            return own[-1].removeprefix(f"{self.name}: ")[:300]
        ending = "no end in time" if status is None else f"signal {-status}" if status < 0 else f"status {status}"
        return f"{self.name} ended with {ending}: {lines[-1] if lines else 'no output'}"[:300]
