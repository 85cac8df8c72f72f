"""Jobs that end in other ways than they should, and jobs side by side: none hangs, none leaves anything, none disturbs.

Options are those of run_mpi.py; the program is the path of mpi_termination (or its name, for libraries from PyPI), and the path
or name of mpi_check after it.
"""
import signal
import subprocess
import sys
import time

import run_mpi
from run_mpi import nodes

_LIMIT_SECONDS = 90  # for an end that everybody waits for; the machine may be busy
_AT_ONCE = 4


class Ends:
    def __init__(self, options, name):
        self.options, self.name, self.wrong = options, name, []
        self.end, self.check = options.program

    def expect(self, held, what, output=""):
        print(f"{'ok' if held else 'FAIL'}: {what}", flush=True)
        if not held:
            print(output)
            self.wrong.append(what)

    def inside(self, node, script):
        return nodes.vcluster("exec", "--name", self.name, f"node{node}", "sh", "-c", script, capture_output=True).stdout

    def leftovers(self):
        """Shared-memory files, sockets and processes in the nodes; their holders sleep, this shell looks.

        MPICH and Intel MPI make files of their own in /dev/shm, which stay when their ranks are killed."""
        script = "ls -A /dev/shm | grep -v -e ^mpich_shm_ -e ^Intel_MPI_; ss -Hanu; ss -Hanw; ss -Ha0 2>/dev/null; " \
                 "for p in /proc/[0-9]*; do [ \"$(readlink $p/ns/net)\" = \"$(readlink /proc/self/ns/net)\" ] && " \
                 "tr '\\0' ' ' <$p/cmdline && echo; done | grep [m]pi_"
        return "".join(self.inside(node, script) for node in range(1, self.options.nodes + 1))

    def clean(self, what):
        deadline = time.monotonic() + 5  # the kernel may still be taking a killed process apart
        left = self.leftovers()
        while left and time.monotonic() < deadline:
            time.sleep(0.2)
            left = self.leftovers()
        self.expect(not left, f"{what}: nothing is left in the nodes", left)

    def ends(self, how):
        self.options.program = [self.end, how]
        begun = time.monotonic()
        status, output, _ = run_mpi.launch(self.options, self.name)
        took = time.monotonic() - begun
        self.expect(status != 0, f"{how}: the launcher says that something went wrong ({status})", output)
        self.expect(took < self.options.seconds, f"{how}: it took {took:.1f} s", output)
        self.clean(how)

    def interrupted(self):
        self.options.program = [self.end, "forever"]
        words, program = run_mpi.command(self.options, self.name)
        process = subprocess.Popen([sys.executable, nodes.VCLUSTER, *words, *program], text=True,
                                   env=run_mpi.environment(self.options), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        started = any("under way" in line for line in process.stdout)
        self.expect(started, "interrupt: the job was under way")
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        status = process.wait()
        took = time.monotonic() - begun
        self.expect(status != 0 and took < _LIMIT_SECONDS, f"interrupt: status {status} after {took:.1f} s")
        self.clean("interrupt")

    def finished_in_flight(self):
        self.options.program = [self.end, "finalize"]
        status, output, _ = run_mpi.launch(self.options, self.name)
        self.expect(status == 0 and "PASS mpi_termination" in output, "finalize with messages on their way", output)
        self.clean("finalize")

    def side_by_side(self):
        self.options.program = [self.check, "--rounds", "1", "--only", "point", "--only", "match", "--only", "collective"]
        words, program = run_mpi.command(self.options, self.name)
        jobs = [subprocess.Popen([sys.executable, nodes.VCLUSTER, *words, *program], text=True,
                                 env={**run_mpi.environment(self.options), "FI_LOG_LEVEL": "warn"},
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(_AT_ONCE)]
        outputs = [job.communicate()[0] for job in jobs]
        passed = sum(job.returncode == 0 and "PASS mpi_check" in output for job, output in zip(jobs, outputs))
        self.expect(passed == _AT_ONCE, f"{passed} of {_AT_ONCE} jobs at once passed", "\n".join(outputs))
        self.clean("jobs at once")


def main():
    options = run_mpi.arguments()
    nodes.prepare()
    run_mpi.install(options)
    options.seconds = _LIMIT_SECONDS
    ends = Ends(options, nodes.make(options.nodes))
    for how in ("abort", "leave", "signal"):
        ends.ends(how)
    ends.interrupted()
    ends.finished_in_flight()
    ends.side_by_side()
    print(f"FAIL: {len(ends.wrong)} expectations" if ends.wrong else "PASS ends")
    return 1 if ends.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
