"""A hostile third node attacks an MPI job or a target of remote memory access. The results must be right, and no
session may end.

    attack_test.py mpi --seconds 8 --provider DIRECTORY --link udp --program mpi_check
    attack_test.py rma --seconds 8 --provider DIRECTORY --link packet --program rma_pair
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(_HERE, ".."))
import virtual_nodes  # noqa: E402

_TARGET_PORT = 9371
_INITIATOR_PORT = 9372
_PATH = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "cluster"]
_FRAMES_MIN = 2000  # fewer frames are no attack


_DECOY = """import socket, sys
decoy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
decoy.bind((sys.argv[1], 0))
print(decoy.getsockname()[1], flush=True)
sys.stdin.read()"""


class Attack:
    """The hostile host in node 3. The test gives it the open UDP ports of the nodes that it attacks. With `decoys` it
    gets other ports there, which no process reads. All nodes share this machine's processors, so that run shows the
    cost of the attacker's own time and of the nodes' kernels."""

    def __init__(self, cluster, rate, decoys=False):
        self.cluster = cluster
        self.decoys = [virtual_nodes.start(cluster.command(node, sys.executable, "-c", _DECOY, cluster.address(node)),
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                       for node in (1, 2) if decoys]
        self.ended = threading.Event()
        self.process = virtual_nodes.start(
            cluster.command(3, sys.executable, "-B", os.path.join(_HERE, "hostile_host.py"), "--address", cluster.address(3),
                            "--interface", "eth0", "--rate", str(rate)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self._tell)
        self.thread.start()

    def _tell(self):
        known = set()
        if self.decoys:
            for node, decoy in zip((1, 2), self.decoys):
                self.process.stdin.write(f"{self.cluster.address(node)} {int(decoy.stdout.readline())}\n")
            self.process.stdin.flush()
            return
        while not self.ended.wait(0.1):
            for node in (1, 2):
                for line in self.cluster.sockets(node, "udp"):
                    found = re.match(r"\s*\d+: ([0-9A-F]{8}):([0-9A-F]{4}) ", line)
                    if found and (node, found[2]) not in known and int(found[2], 16) > 1023:
                        known.add((node, found[2]))
                        self.process.stdin.write(f"{self.cluster.address(node)} {int(found[2], 16)}\n")
                        self.process.stdin.flush()

    def end(self):
        """Stops it; returns its report."""
        self.ended.set()
        self.thread.join()
        output, _ = self.process.communicate(timeout=30)
        for decoy in self.decoys:
            decoy.communicate(timeout=30)
        return json.loads(output)


def environment(options):
    values = virtual_nodes.without_settings()
    values.update({"FI_PROVIDER_PATH": os.path.abspath(options.provider), "FI_PROVIDER": "cluster",
                   "FI_CLUSTER_LINK": options.link, "FI_LOG_LEVEL": "info"})
    return values


def mpi(cluster, options):
    """The exit status and the output of a job with as many rounds as fill the time."""
    command = cluster.mpirun("--on", "node1,node2", "--mca", "mpi_yield_when_idle", "1", "-np", "4", *_PATH, options.program,
                             "--timeout", str(options.seconds + 100), *options.arguments)
    end = time.monotonic() + options.seconds
    output = ""
    while True:
        result = subprocess.run(command, env=environment(options), capture_output=True, text=True, check=False,
                                timeout=options.seconds + 200)
        output += result.stdout + result.stderr
        passed = result.returncode == 0 and "PASS mpi_check" in result.stdout
        if not passed or time.monotonic() > end:
            return 0 if passed else result.returncode or 1, output


def ended(process, timeout):
    """The output of the process. One that does not end in time is killed."""
    try:
        return process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0] + f"FAIL: still running after {timeout} s\n"


def rma(cluster, options):
    with tempfile.TemporaryDirectory(prefix="attack-") as directory:
        errors = Path(directory) / "errors"
        with open(errors, "w", encoding="utf-8") as log:
            common = {"stdout": subprocess.PIPE, "stderr": log, "text": True, "env": environment(options)}
            words = [options.program, *(["--poll"] if options.poll else []), "--window", str(options.window), str(options.seconds)]
            target = subprocess.Popen(cluster.command(1, *words, cluster.address(1), str(_TARGET_PORT)), **common)
            ready = target.stdout.readline()
            initiator = subprocess.Popen(
                cluster.command(2, *words, cluster.address(2), str(_INITIATOR_PORT), cluster.address(1), str(_TARGET_PORT)),
                **common)
            outputs = [ended(each, options.seconds + 60) for each in (initiator, target)]
        output = ready + "".join(outputs) + errors.read_text(encoding="utf-8", errors="replace")
    passed = initiator.returncode == 0 and target.returncode == 0 and output.count("PASS") == 2
    return 0 if passed else 1, output


def rounds(output):
    found = re.search(r"PASS initiator, (\d+) rounds", output)
    return int(found[1]) if found else 0


def rounds_under(cluster, options, decoys):
    attack = Attack(cluster, options.rate, decoys)
    try:
        return rounds(rma(cluster, options)[1])
    finally:
        attack.end()


def compare(cluster, options):
    """Measures the cost of an attack. The runs alternate, since this machine's speed changes by more than that cost
    within seconds."""
    ways = {"undisturbed": lambda: rounds(rma(cluster, options)[1]),
            "decoys": lambda: rounds_under(cluster, options, decoys=True),
            "attack": lambda: rounds_under(cluster, options, decoys=False)}
    found = {way: [] for way in ways}
    for turn in range(options.compare):
        for way, run in ways.items():
            found[way].append(run() / options.seconds)
        print(f"[{turn + 1}/{options.compare}] " + ", ".join(f"{way} {values[-1]:.0f}" for way, values in found.items()), flush=True)

    def less(other):
        return 100 * statistics.median(1 - attack / max(value, 1) for attack, value in zip(found["attack"], found[other]))
    print("rounds a second, median: " + ", ".join(f"{way} {statistics.median(values):.0f}" for way, values in found.items()) +
          f"; under attack {less('decoys'):.1f} % fewer than while the same frames go to ports that no process reads, "
          f"{less('undisturbed'):.1f} % fewer than undisturbed (medians of {options.compare} turns)")


def judge(options, own, status, output, done):
    """`own`: the address of the hostile host; its own sessions may end."""
    wrong = [f"exit status {status}"] if status != 0 else []
    wrong += [f"a session ended: {line}" for line in output.splitlines() if " is lost: " in line and f"{own}:" not in line]
    if done["sent"] < _FRAMES_MIN or not done["endpoints"]:
        wrong.append("that was no attack")
    if done["writes_done"]:
        wrong.append(f"{done['writes_done']} writes of the hostile host were executed")
    if options.case == "rma" and not done["refused_writes"]:
        wrong.append("no write of the hostile host was refused: did it reach the target at all?")
    interesting = r"PASS|FAIL|endpoint \S+ closed|<warn>"
    print("\n".join(line for line in output.splitlines() if wrong or re.search(interesting, line)))
    print(f"the hostile host: {done['sent'] / max(done['seconds'], 1e-3):.0f} frames a second for {done['seconds']:.1f} s, {done}")
    for line in wrong:
        print(f"FAIL: {line}")
    return 1 if wrong else 0


def main():
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("case", choices=("mpi", "rma"))
    made.add_argument("--seconds", type=int, default=8, help="how long the attack lasts at least (default: %(default)s)")
    made.add_argument("--provider", required=True, help="directory of libcluster-fi.so")
    made.add_argument("--link", choices=("udp", "packet"), default="udp")
    made.add_argument("--rate", type=int, default=50000, help="frames a second at most (default: %(default)s)")
    made.add_argument("--compare", type=int, default=0, metavar="TURNS",
                      help="then runs undisturbed, beside an attack on other ports, and under attack in turn: what it costs (rma)")
    made.add_argument("--poll", action="store_true", help="both sides of rma read their queues without a pause, and do not sleep")
    made.add_argument("--window", type=int, default=1, help="puts and gets of rma at once (default: %(default)s)")
    made.add_argument("--program", required=True, help="mpi_check or rma_pair")
    made.epilog = "behind `--`: arguments of mpi_check"
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options = made.parse_args(words[:end])
    options.arguments = words[end + 1:]
    virtual_nodes.require(*(["mpirun"] if options.case == "mpi" else []))
    cluster = virtual_nodes.shared(3)
    attack = Attack(cluster, options.rate)
    try:
        status, output = (mpi if options.case == "mpi" else rma)(cluster, options)
    finally:
        done = attack.end()
    failed = judge(options, cluster.address(3), status, output, done)
    if options.compare:
        compare(cluster, options)
    return failed


if __name__ == "__main__":
    sys.exit(main())
