"""The ways a job can run in the demo: which transport, on which nodes; and how its figures are read."""
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
from vcluster_lib import temporary  # noqa: E402

_CLUSTER = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster"]
_JOB_SECONDS = 120

# name: (options of mpirun, environment)
# Left to itself, Open MPI 4.1.4 makes windows of what its transport cannot do, and crashes or refuses.
_WINDOWS = ["--mca", "osc", "pt2pt,sm"]
TRANSPORTS = {
    "cluster": (_CLUSTER, {}),
    "packet": (_CLUSTER, {"FI_CLUSTER_LINK": "packet"}),
    "udp": (_CLUSTER, {"FI_CLUSTER_LINK": "udp"}),
    "tcp": (["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"], {}),
    "vader": (["--mca", "pml", "ob1", "--mca", "btl", "vader,self"], {}),
}

MEASURES = [("latency_us", 8), ("latency_us", 1024), ("latency_us", 65536), ("bandwidth_MBps", 1048576),
            ("rate_kmsgs", 8)]


class JobFailed(Exception):
    """A job ended badly; the text says how."""


class Runner:
    """Runs programs of the build over the nodes of a cluster, or on this machine alone when there is none."""

    def __init__(self, build, cluster):
        self.programs = os.path.join(build, "fabtests", "mpi")
        self.provider = os.path.join(build, "prov", "cluster")
        self.cluster = cluster

    def environment(self, transport):
        values = {name: value for name, value in os.environ.items() if not name.startswith(("FI_", "OMPI_"))}
        if TRANSPORTS[transport][0] is _CLUSTER:
            values.update({"FI_PROVIDER_PATH": self.provider, "FI_PROVIDER": "cluster"})
        values.update(TRANSPORTS[transport][1])
        return values

    def run(self, transport, ranks, inside, program, *arguments):
        """Returns what the program printed."""
        # Who measures spins; who checks gives way, or a busy machine would make each step of lockstep a time slice.
        manner = [] if program == "mpi_bench" else ["--mca", "mpi_yield_when_idle", "1"]
        command = [*TRANSPORTS[transport][0], *_WINDOWS, *manner, "-np", str(ranks), "--timeout", str(_JOB_SECONDS),
                   os.path.join(self.programs, program), *arguments]
        if self.cluster:
            place = ["--on", "node1"] if inside else []
            command = [sys.executable, temporary.TOOL, "mpirun", "--name", self.cluster, *place, *command]
        else:
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", *command]
        result = subprocess.run(command, env=self.environment(transport), capture_output=True, text=True, check=False)
        if result.returncode != 0 or "FAIL" in result.stdout:
            raise JobFailed(f"{program} over {transport} ended with status {result.returncode}:\n"
                            f"{result.stdout}{result.stderr}")
        return result.stdout

    def figures(self, transport, inside):
        """One run of mpi_bench: {(measure, bytes): value}."""
        text = self.run(transport, 2, inside, "mpi_bench", "--pin", "--repetitions", "3", "--milliseconds", "80")
        found = re.findall(r"^(\w+) (\d+) ([\d.]+) ", text, re.MULTILINE)
        values = {(name, int(size)): float(value) for name, size, value in found}
        if set(values) != set(MEASURES):
            raise JobFailed(f"mpi_bench over {transport} printed no complete result:\n{text}")
        return values

    def cache_line(self):
        """Nanoseconds a cache line takes between two processors; infinite when that cannot be found out."""
        result = subprocess.run([os.path.join(self.programs, "cacheline")], capture_output=True, text=True, check=False)
        return float(result.stdout) if result.returncode == 0 else math.inf
