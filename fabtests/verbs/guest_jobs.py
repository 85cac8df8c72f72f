#!/usr/bin/env python3
"""MPI jobs over two virtual machines with soft-RoCE: two real hosts with an RDMA device each.

    guest_jobs.py --build BUILD [--cache CORES] [--only JOB,...]   in both guests (rxe_guest -n 2)
    guest_jobs.py --run HOST COMMAND...                            what mpirun uses instead of ssh

The second guest runs what the first one asks for. The first one runs each job and checks that its bytes have taken the device. CORES:
the cache of MPI libraries from PyPI (fabtests/pypi_wheels.py); without it, MPICH is left out. Figures of other libraries over the same
device are printed for comparison: under an interpreter they say nothing of the speed of hardware.
"""
import argparse
import json
import os
import re
import resource
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PORT = 2222
HOSTS = ["10.97.0.1", "10.97.0.2"]
JOB_SECONDS = 900
BOOT_SECONDS = 300  # until the other guest serves
SERVER_SECONDS = 5  # until a program there waits for its peer
REMOVED_AFTER = 5  # seconds in which a job runs before its device is removed
PINGPONG = ["fi_pingpong", "-e", "rdm", "-I", "200", "-S", "all", "-p"]


def serve():
    """Runs the commands of the other guest until one of them is `quit`."""
    listener = socket.create_server(("", PORT))
    while True:
        connection, _ = listener.accept()
        command = connection.makefile("r").readline().strip()
        if command == "quit":
            return
        if not command:  # the other guest has only asked whether this one serves
            continue
        threading.Thread(target=execute, args=(connection, json.loads(command)), daemon=True).start()


def execute(connection, command):
    with connection, subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            connection.sendall(line)
        connection.sendall(b"\0%d" % process.wait())


def run_there(host, command):
    """Copies what the command prints; returns its status."""
    with socket.create_connection((host, PORT)) as connection:
        connection.sendall((json.dumps(command) + "\n").encode())
        rest = b""
        while data := connection.recv(65536):
            rest += data
            text, end, status = rest.rpartition(b"\0")
            sys.stdout.buffer.write(text if end else rest)
            sys.stdout.flush()
            rest = end + status if end else b""
    return int(rest[1:]) if rest[1:].isdigit() else 255


def quit_there():
    with socket.create_connection((HOSTS[1], PORT)) as connection:
        connection.sendall(b"quit\n")


class Jobs:
    def __init__(self, options):
        self.build, self.cache = Path(options.build).resolve(), options.cache and Path(options.cache).resolve()
        self.ours = {"FI_PROVIDER": "cluster", "FI_PROVIDER_PATH": str(self.build / "prov" / "cluster"), "FI_CLUSTER_LINK": "verbs",
                     "FI_CLUSTER_IFACE": "eth0", "FI_LOG_LEVEL": "info"}
        self.agent = Path(tempfile.mkdtemp()) / "agent"
        self.agent.write_text(f'#!/bin/sh\nexec {sys.executable} -B {HERE}/guest_jobs.py --run "$@"\n', encoding="ascii")
        self.agent.chmod(0o755)

    def await_guest(self):
        deadline = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                return socket.create_connection((HOSTS[1], PORT), 5).close()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    @staticmethod
    def job(line, environment):
        process = subprocess.run(list(map(str, line)), env={**os.environ, **environment}, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=JOB_SECONDS, check=False)
        return process.returncode, process.stdout

    @staticmethod
    def lacking(status, output, *patterns):
        """What is wrong with the job; nothing if it has ended well and says all of this."""
        wrong = [f"status {status}"] if status != 0 else []
        wrong += [f"nothing says {pattern!r}" for pattern in patterns if not re.search(pattern, output)]
        return wrong and wrong + [line for line in output.splitlines() if "Opening" not in line][-30:]

    def open_mpi(self, **more):
        from mpi_libraries import LIBRARIES
        library, environment = LIBRARIES["openmpi4"], {**self.ours, **more}
        line = ["mpirun", "--allow-run-as-root", "-np", "2", "-host", ",".join(HOSTS), "--mca", "plm_rsh_agent", self.agent,
                "--mca", "oob_tcp_if_include", "eth0", "--mca", "osc", library.windows["cluster"], *library.words["cluster"]]
        for name in environment:
            line += ["-x", name]
        skipped = [word for test in library.lacks["cluster"] for word in ("--skip", test)]
        return self.job([*line, self.build / "fabtests/mpi/mpi_check", "--rounds", "1", *skipped], environment)

    def openmpi(self):
        return self.lacking(*self.open_mpi(), "PASS mpi_check", "to queue pair .* works", "reads its long messages")

    def openmpi_keyed(self):
        return self.lacking(*self.open_mpi(FI_CLUSTER_KEY="5e" * 32, FI_CLUSTER_SECURITY="encrypt"), "PASS mpi_check",
                            "to queue pair .* works", "frames are encrypted")

    def openmpi_removed(self):
        """The second guest loses its device while the job runs. The removal ends with the job: libfabric's own provider opens
        every device."""
        def remove():
            time.sleep(REMOVED_AFTER)
            run_there(HOSTS[1], "rdma link delete rxe0")
        removal = threading.Thread(target=remove)
        removal.start()
        wrong = self.lacking(*self.open_mpi(), "PASS mpi_check", "is no longer used")
        removal.join()
        run_there(HOSTS[1], "rdma link add rxe0 type rxe netdev eth0")
        return wrong

    def mpich(self):
        from mpi_libraries import LIBRARIES
        found = sorted((self.cache / "installed").glob("mpich-*")) if self.cache else []
        program = self.cache and self.cache / "programs" / "mpi_check.mpich"
        if not found or not program.exists():
            return None
        library = LIBRARIES["mpich"]
        environment = {**self.ours, **library.variables["cluster"]}
        line = [found[-1] / "bin/mpiexec", "-launcher", "rsh", "-launcher-exec", self.agent, "-iface", "eth0", "-hosts", ",".join(HOSTS), "-n", "2"]
        for name, value in environment.items():
            line += ["-genv", name, value]
        skipped = [word for test in library.lacks["cluster"] for word in ("--skip", test)]
        return self.lacking(*self.job([*line, program, "--rounds", "1", *skipped], environment), "PASS mpi_check",
                            "to queue pair .* works", "reads its long messages")

    def both(self, program, environment):
        """Runs a program that waits for its peer in the second guest, and its peer here."""
        set_there = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        there = threading.Thread(target=run_there, args=(HOSTS[1], f"env {set_there} timeout {JOB_SECONDS} {shlex.join(program)} &> /dev/null"))
        there.start()
        time.sleep(SERVER_SECONDS)
        status, output = self.job([*program, HOSTS[1]], environment)
        there.join()
        return status, output

    def pingpong(self):
        status, output = self.both([*PINGPONG, "cluster"], self.ours)
        print("fi_pingpong over cluster:", *re.findall(r"^(?:bytes|64 |4k|64k|1m).*", output, re.MULTILINE), sep="\n")
        return self.lacking(status, output, "to queue pair .* works")

    def others(self):
        """Prints figures only: the programs are not ours."""
        for name, program, environment in (
                ("fi_pingpong over verbs;ofi_rxm", [*PINGPONG, "verbs;ofi_rxm"], {}),
                ("UCX over rc and ud", ["ucx_perftest", "-t", "tag_lat", "-s", "64", "-n", "200"],
                 {"UCX_TLS": "rc,ud,self", "UCX_NET_DEVICES": "rxe0:1"})):
            status, output = self.both(program, environment)
            print(f"{name}, status {status}:", *output.splitlines()[-12:], sep="\n")
        return []


def failed(name, job):
    begun = time.monotonic()
    try:
        wrong = job()
    except (subprocess.TimeoutExpired, OSError) as error:
        wrong = [str(error)]
    result = "not run" if wrong is None else "FAILED" if wrong else "passed"
    print(f"{name}: {result}, {time.monotonic() - begun:.0f} s", *(wrong or []), sep="\n", flush=True)
    return bool(wrong)


def main():
    if sys.argv[1:2] == ["--run"]:
        words = sys.argv[2:]
        while words and words[0].startswith("-"):  # options of ssh
            words.pop(0)
        return run_there(words[0], " ".join(words[1:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cache")
    parser.add_argument("--only", default="pingpong,openmpi,openmpi_keyed,mpich,openmpi_removed,others", help="(default: %(default)s)")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "mpi"))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if os.environ["GUEST"] != "1":
        return serve()
    jobs = Jobs(options)
    jobs.await_guest()
    try:
        return any([failed(name, getattr(jobs, name)) for name in options.only.split(",")])
    finally:
        quit_there()


if __name__ == "__main__":
    sys.exit(main())
