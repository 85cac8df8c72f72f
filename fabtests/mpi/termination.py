"""Jobs that end abnormally, and jobs at the same time: none hangs, none leaves anything behind, none disturbs another.

Options are those of run_mpi.py; the program is the path of mpi_termination (or its name, for libraries from PyPI), followed
by the path or name of mpi_check.
"""
import signal
import subprocess
import sys
import time

import run_mpi
from run_mpi import virtual_nodes

_LIMIT_SECONDS = 90  # until every rank has ended; the machine may be busy
_AT_ONCE = 4


class Termination:
    def __init__(self, options, cluster):
        self.options, self.cluster, self.wrong = options, cluster, []
        self.end, self.check = options.program

    def expect(self, held, what, output=""):
        print(f"{'ok' if held else 'FAIL'}: {what}", flush=True)
        if not held:
            print(output)
            self.wrong.append(what)

    def leftovers(self):
        """Shared-memory files, sockets and processes in the nodes, listed by a shell in each.

        MPICH and Intel MPI make files of their own in /dev/shm, which stay when their ranks are killed."""
        script = "ls -A /dev/shm | grep -v -e ^mpich_shm_ -e ^Intel_MPI_; ss -Hanu; ss -Hanw; ss -Ha0 2>/dev/null; " \
                 "for p in /proc/[0-9]*; do [ \"$(readlink $p/ns/net)\" = \"$(readlink /proc/self/ns/net)\" ] && " \
                 "tr '\\0' ' ' <$p/cmdline && echo; done | grep [m]pi_"
        return "".join(subprocess.run(self.cluster.command(node, "sh", "-c", script), capture_output=True, text=True, check=False).stdout
                       for node in range(1, self.options.nodes + 1))

    def clean(self, what):
        deadline = time.monotonic() + 5  # the kernel may still be taking a killed process apart
        left = self.leftovers()
        while left and time.monotonic() < deadline:
            time.sleep(0.2)
            left = self.leftovers()
        self.expect(not left, f"{what}: nothing is left in the nodes", left)

    def abnormal(self, how):
        self.options.program = [self.end, how]
        begun = time.monotonic()
        status, output, _ = run_mpi.launch(self.options, self.cluster)
        took = time.monotonic() - begun
        self.expect(status != 0, f"{how}: the launcher reports a failure ({status})", output)
        self.expect(took < self.options.seconds, f"{how}: it took {took:.1f} s", output)
        self.clean(how)

    def interrupted(self):
        self.options.program = [self.end, "forever"]
        words, program = run_mpi.command(self.options)
        process = subprocess.Popen(self.cluster.mpirun(*words, *program), text=True,
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
        status, output, _ = run_mpi.launch(self.options, self.cluster)
        self.expect(status == 0 and "PASS mpi_termination" in output, "finalize with messages on their way", output)
        self.clean("finalize")

    def at_once(self):
        self.options.program = [self.check, "--rounds", "1", "--only", "point", "--only", "match", "--only", "collective"]
        words, program = run_mpi.command(self.options)
        jobs = [subprocess.Popen(self.cluster.mpirun(*words, *program), text=True,
                                 env={**run_mpi.environment(self.options), "FI_LOG_LEVEL": "warn"},
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(_AT_ONCE)]
        outputs = [job.communicate()[0] for job in jobs]
        passed = sum(job.returncode == 0 and "PASS mpi_check" in output for job, output in zip(jobs, outputs))
        self.expect(passed == _AT_ONCE, f"{passed} of {_AT_ONCE} jobs at once passed", "\n".join(outputs))
        self.clean("jobs at once")


def main():
    options = run_mpi.arguments()
    virtual_nodes.require("mpirun")
    run_mpi.install(options)
    options.seconds = _LIMIT_SECONDS
    termination = Termination(options, run_mpi.cluster_for(options))
    for how in ("abort", "leave", "signal"):
        termination.abnormal(how)
    termination.interrupted()
    termination.finished_in_flight()
    termination.at_once()
    print(f"FAIL: {len(termination.wrong)} expectations" if termination.wrong else "PASS termination")
    return 1 if termination.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
