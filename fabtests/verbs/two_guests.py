#!/usr/bin/env python3
"""Nodes with real cables between them: MPI jobs over two RDMA devices, mixed nodes, and devices, ports and cables that fail.

    two_guests.py BUILD [CORES] [test...]     in the first guest of `rxe_guest -2`

CORES: the cache of MPI libraries from PyPI (fabtests/pypi_wheels.py). Without it, or without its mpi_check, MPICH is left out.
"""
import os
import re
import resource
import shlex
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("LIFE_PATIENCE", "3")  # four interpreted processors share those of this machine
sys.path[:0] = [str(HERE), str(HERE.parent / "life"), str(HERE.parent / "mpi")]
import verbs_test  # noqa: E402
from life_process import LATE, Life, Process, acquaint, lived  # noqa: E402
from mpi_libraries import LIBRARIES  # noqa: E402

SSH = "/run/guest/ssh"
NODES = ("10.97.0.1", "10.97.0.2")  # with devices
PLAIN = "10.97.0.3"  # without one
OTHER = "10.96.0.2"  # the second node at the cable that is never cut
CUT = Path(os.environ.get("OUT", "/run/out")) / "unplugged"
BOOT_SECONDS = 600
JOB_SECONDS = 1800  # an interpreter on a busy machine
LISTENS_SECONDS = 120  # until a program there listens
OURS = {"FI_PROVIDER": "cluster", "FI_CLUSTER_LINK": "verbs", "FI_CLUSTER_IFACE": "eth0", "FI_CLUSTER_RAILS": "none", "FI_LOG_LEVEL": "info",
        "FI_LOG_PROV": "cluster"}


def there(words, environment=(), node=OTHER):
    return [SSH, node, shlex.join(["env", *(f"{name}={value}" for name, value in dict(environment).items()), *map(str, words)])]


def output_of(words, environment=(), seconds=JOB_SECONDS):
    """The status and the output of a command of this node."""
    done = subprocess.run(list(map(str, words)), env={**os.environ, **dict(environment)}, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False)
    return done.returncode, done.stdout


def await_node(node):
    deadline = lived() + BOOT_SECONDS
    while output_of([SSH, "-o", "ConnectTimeout=10", node, "true"])[0] != 0:
        if lived() > deadline:
            raise RuntimeError(f"{node} does not boot")
        time.sleep(1)


class Jobs(unittest.TestCase):
    cores = None

    def judge(self, done, *patterns):
        status, said = done
        end = "\n".join(line for line in said.splitlines() if "Opening" not in line)[-6000:]
        if status != 0:
            print(end, file=sys.stderr, flush=True)
        self.assertEqual(status, 0)
        for pattern in patterns:
            self.assertTrue(re.search(pattern, said), f"nothing says {pattern}; {end}")

    def open_mpi(self, nodes=NODES, more=(), skipped=()):
        library = LIBRARIES["openmpi4"]
        environment = {**OURS, "FI_PROVIDER_PATH": Life.plugin, **dict(more)}
        line = ["mpirun", "--allow-run-as-root", "-np", len(nodes), "-host", ",".join(nodes), "--mca", "plm_rsh_agent", SSH,
                "--mca", "oob_tcp_if_include", "eth0", "--mca", "osc", library.windows["cluster"], "--mca", "mpi_yield_when_idle", "1",
                *library.words["cluster"]]
        for name in environment:
            line += ["-x", name]
        line += [os.path.join(Life.build, "fabtests/mpi/mpi_check"), "--rounds", "1", "--timeout", JOB_SECONDS]
        for test in (*library.lacks["cluster"], *skipped):
            line += ["--skip", test]
        return output_of(line, environment)

    def test_open_mpi(self):
        self.judge(self.open_mpi(), "PASS mpi_check", "to queue pair .* works", "reads its long messages")

    def test_open_mpi_with_a_key(self):
        self.judge(self.open_mpi(more={"FI_CLUSTER_KEY": "5e" * 32, "FI_CLUSTER_SECURITY": "encrypt"}), "PASS mpi_check",
                   "to queue pair .* works", "frames are encrypted")

    def test_mixed_nodes(self):
        """Two nodes have a device, the third one has none. The third is in the same kernel as the second."""
        self.judge(self.open_mpi((*NODES, PLAIN), {"FI_CLUSTER_LINK": "auto", "FI_CLUSTER_SHM": "no"}),
                   "PASS mpi_check", "to queue pair .* works", "reads its long messages", "no RDMA device")

    def test_mpich(self):
        found = sorted((self.cores / "installed").glob("mpich-*")) if self.cores else []
        program = self.cores and self.cores / "programs" / "mpi_check.mpich"
        if not found or not program.exists():
            self.skipTest("no MPICH from PyPI")
        library = LIBRARIES["mpich"]
        environment = {**OURS, "FI_PROVIDER_PATH": Life.plugin, **library.variables["cluster"]}
        line = [found[-1] / "bin/mpiexec", "-launcher", "ssh", "-launcher-exec", SSH, "-iface", "eth0", "-hosts", ",".join(NODES), "-n", "2"]
        for name, value in environment.items():
            line += ["-genv", name, value]
        line += [program, "--rounds", "1", "--timeout", JOB_SECONDS]
        for test in library.lacks["cluster"]:
            line += ["--skip", test]
        self.judge(output_of(line, environment), "PASS mpi_check", "to queue pair .* works", "reads its long messages")

    def test_pingpong(self):
        words = ["fi_pingpong", "-e", "rdm", "-I", "20", "-S", "1048576", "-p", "cluster"]
        environment = {**OURS, "FI_PROVIDER_PATH": Life.plugin}
        with subprocess.Popen(there(words, environment), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            deadline = lived() + LISTENS_SECONDS
            while "Connection refused" in (done := output_of([*words, NODES[1]], environment))[1] and lived() < deadline:
                time.sleep(1)
            server.kill()
        print(*re.findall(r"^(?:bytes|64 |4k|64k|1m).*", done[1], re.MULTILINE), sep="\n", flush=True)
        self.judge(done, "to queue pair .* works", r"(?m)^1m\s")


class Streams(verbs_test.Verbs):
    """The tests of verbs_test.py between the nodes, and the faults that only a real cable has."""
    devices = ("eth0", "eth0")

    def start(self, side, **settings):
        settings = {**OURS, "FI_PROVIDER_PATH": Life.plugin, "FI_CLUSTER_SHM": "no", **settings}
        process = Process([] if side == 1 else there([], settings), **settings)
        self.addCleanup(process.close)
        return process

    @staticmethod
    def reader(process):
        return None  # the process may be one of the other node

    def goes_on(self, cut, mend, direction):
        """Messages go on over the other cable while eth0 is cut, and take the device again afterwards."""
        one, other = (self.start(side, FI_CLUSTER_RAILS="eth1") for side in (1, 2))
        to_other, to_one = acquaint(one, other)
        for process in (one, other):
            process.do(f"keep 16 {verbs_test.SIZE_MAX}")
        self.await_verbs(one, other, to_other)
        self.await_device_reads(one, other, to_other)
        sender, receiver, handle = ((one, other, to_other), (other, one, to_one))[direction]
        try:
            longest = self.stream(sender, receiver, handle, list(range(300)), 3000, lambda seed: cut() if seed == 150 else None)
            print(f"longest time without a message: {longest * 1e3:.0f} ms", file=sys.stderr)
            # Long messages and peers that have been silent for a while, with the cable still cut.
            still = self.stream(sender, receiver, handle, list(range(400, 420)), verbs_test.LONG // 10)
            print(f"the same for messages of {verbs_test.LONG // 10} bytes: {still * 1e3:.0f} ms", file=sys.stderr)
            self.assertLess(max(longest, still), verbs_test.STILL_MAX * LATE, self.state(one, other))
        finally:
            since = len(one.log())
            mend()
        begun = lived()
        self.await_verbs(one, other, to_other, lambda process: re.search(" to queue pair .* works", process.log()[since:]), verbs_test.BACK_MAX)
        print(f"back on verbs after {lived() - begun:.1f} s", file=sys.stderr)
        self.stream(sender, receiver, handle, list(range(1000, 1020)), 3000)

    def test_a_port_goes_down(self):
        for direction in (0, 1):
            self.goes_on(lambda: subprocess.run(["ip", "link", "set", "eth0", "down"], check=True),
                         lambda: subprocess.run(["ip", "link", "set", "eth0", "up"], check=True), direction)

    def test_a_cable_is_cut(self):
        for direction in (0, 1):
            self.goes_on(CUT.touch, CUT.unlink, direction)


def main():
    arguments = sys.argv[1:]
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    Life.build = str(Path(arguments.pop(0)).resolve())
    Life.plugin, Life.program = os.path.join(Life.build, "prov", "cluster"), os.path.join(Life.build, "fabtests", "life", "life_peer")
    if arguments and os.path.isdir(arguments[0]):
        Jobs.cores = Path(arguments.pop(0)).resolve()
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for node in (OTHER, PLAIN):
        await_node(node)
    unittest.main(argv=[sys.argv[0], "-v", *arguments])


if __name__ == "__main__":
    main()
