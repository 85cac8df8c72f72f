"""What only the page about the papers asks: measures of whole programs, by the programs and scripts of the tests.

Each measure gives rows (dictionaries), or says why there are none."""
import contextlib
import copy
import json
import os
import re
import shutil
import statistics
import sys
import time
from concurrent import futures
from dataclasses import dataclass, replace

from cluster_lib import build, job_key
from cluster_lib.environment import of_provider, without_settings
from vcluster_lib import temporary

from . import transports
from .errors import NotHere, Skipped
from .placement import Place
from .plan import Item
from .processes import Child
from .transports import BETWEEN

_SECONDS_MAX = 600  # of one program
_MAILBOX_PORT = 20052
_SKIPPED = 77  # exit status of a script whose programs are not installed
_TIMES = "prov/cluster/test/budget/frames.py"
_PVM = "fabtests/ip/pvm_table.py"
_PVM_PROGRAMS = "fabtests/ip"  # the script skips where they are not built
_JOBS = "fabtests/scale/jobs.py"
# The two implementations of MPI-MPC, and MPI above: name of the row -> kind, transport and way to wait.
GAUSS_WAYS = {"asleep": ("fabric", "cluster/udp", "block"), "polling": ("fabric", "cluster/packet", "spin"),
              "mpi_asleep": ("mpi", "mpi:cluster/udp", "block"), "mpi_udp": ("mpi", "mpi:cluster/udp", "spin"),
              "mpi": ("mpi", "mpi:cluster/packet", "spin")}
PAIRS_WAYS = {"cluster": "cluster/packet", "tcp": "tcp"}
# Two joined clusters: both nodes in one network, or only a relay on a third node reaches both. Relays need a key.
JOINED_WAYS = ("direct", "relay")
JOINED_ITEMS = {"latency": Item("latency", 64), "bandwidth": Item("bandwidth", 64 << 10, 64), "bandwidth_large": Item("bandwidth", 1 << 20, 16)}
_JOINED_SECONDS = 20  # until a relay has begun
PAIRS_ITEMS = {"rate": Item("rate", 8, 64), "bandwidth": Item("bandwidth", 1 << 20, 16)}
MATRIX_WAYS = {"mpi": "mpi:cluster/packet", "mpi_tcp": "mpi:vader+tcp"}


@dataclass(frozen=True)
class Form:
    """How much of each measure."""
    repetitions: int
    stages: tuple  # words for frames.py
    pvm: tuple  # words for pvm_table.py
    matrix_order: int
    matrix_nanoseconds: int  # of sleep in place of computing, an element
    matrix_nodes: tuple
    jobs: tuple  # forms as jobs.py has them: the first that ends counts
    job_ways: str
    job_seconds: int
    gauss_orders: tuple
    gauss_ways: tuple
    pairs: tuple  # of processes between two nodes, all at once
    pairs_ways: tuple
    pairs_milliseconds: int
    control_order: int
    control_sizes: tuple  # values of FI_CLUSTER_NET_EAGER


FULL = Form(repetitions=3, stages=(), pvm=(), matrix_order=400, matrix_nanoseconds=5000, matrix_nodes=(1, 4, 6, 8, 9),
            jobs=("70x4", "24x4", "24x1"), job_ways="cluster,tcp", job_seconds=240,
            gauss_orders=(800, 1000, 1200, 1400, 1600, 1800, 2000), gauss_ways=tuple(GAUSS_WAYS),
            pairs=(1, 2, 4), pairs_ways=tuple(PAIRS_WAYS), pairs_milliseconds=500, control_order=2000, control_sizes=("256", "1k", "4k", "16k", "64k"))
QUICK = replace(FULL, repetitions=1, stages=("--rounds", 1), job_ways="cluster", gauss_orders=(800, 1400, 2000), control_sizes=("1k", "4k", "64k"))
# For the check, whatever the figures.
SMOKE = Form(repetitions=1, stages=("--rounds", 1, "--sizes", "64"), pvm=("--networks", "over", "--nodes", ""), matrix_order=60, matrix_nanoseconds=1000,
             matrix_nodes=(1, 2), jobs=("2x1",), job_ways="cluster", job_seconds=60, gauss_orders=(40,), gauss_ways=("asleep", "polling", "mpi_asleep"),
             pairs=(2,), pairs_ways=("cluster",), pairs_milliseconds=20, control_order=40, control_sizes=("1k",))


class Measures:
    """Runs them on a cluster of its own, where their scripts do not make one."""

    def __init__(self, runner, form, say):
        self._runner, self._form, self._say = copy.copy(runner), form, say
        self._runner.limit = _SECONDS_MAX
        self._made = None

    def all(self):
        """Name -> the rows, and why there are none."""
        found = {}
        work = {"stages": self._stages, "pvm": self._pvm, "jobs": self._jobs, "pairs": self._pairs, "matrix": self._matrix, "gauss": self._gauss, "control": self._control,
                "mailbox": self._mailbox, "joined": self._joined}
        begun = time.monotonic()
        for number, (name, measure) in enumerate(work.items(), 1):
            self._say(f"[papers {number}/{len(work)}] {name}, {time.monotonic() - begun:.0f} s since the first")
            try:
                found[name] = {"rows": measure(), "reason": "", "not_here": False}
            except (Skipped, RuntimeError, KeyError, ValueError, OSError) as reason:
                found[name] = {"rows": [], "reason": str(reason), "not_here": isinstance(reason, NotHere)}
                self._say(f"      left out: {reason}")
        if self._made:
            self._made.down()
        return found

    def _program(self, name):
        path = "" if build.installed else build.path(name, self._runner.build)
        if name in targets()[1] and shutil.which("mpirun") is None:
            raise NotHere("no Open MPI here (Debian: openmpi-bin, libopenmpi-dev)")
        if not os.path.exists(path):
            raise Skipped(f"{name} is not built: it belongs to the tests of the source tree")
        return path

    def _provider(self):
        return os.path.dirname(self._runner.program("cluster-fi"))

    def _script(self, name, words, environment):
        """The lines that a script of the tests prints."""
        child = Child([sys.executable, "-B", os.path.join(build.TOP, name), *map(str, words)], environment)
        child.name = os.path.basename(name)
        status = child.finish(_SECONDS_MAX)
        if status == _SKIPPED:
            raise NotHere(child.output_lines[-1])
        if status != 0:
            raise Skipped(child.failure_reason())
        return child.output_lines

    def _stages(self):
        lines = self._script(_TIMES, ["--times", *self._form.stages, self._program("budget_frames")],
                             of_provider(self._provider()))
        rows = [re.fullmatch(r"\| (packet|udp), (\d+) B \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", line) for line in lines]
        names = ("send", "send_kernel", "arrive", "arrive_kernel")
        return [{"link": row[1], "bytes": int(row[2]), **{name: float(row[at]) for at, name in enumerate(names, 3)}} for row in rows if row]

    def _pvm(self):
        words = ["--program", self._program("cluster-ip"), "--provider", self._provider(),
                 "--programs", os.path.join(self._runner.build, _PVM_PROGRAMS), "--order", self._form.matrix_order,
                 "--nanoseconds", self._form.matrix_nanoseconds, "--repetitions", self._form.repetitions, "--nodes", ",".join(map(str, self._form.matrix_nodes)), *self._form.pvm]
        return [json.loads(line) for line in self._script(_PVM, words, without_settings()) if line.startswith("{")]

    def _jobs(self):
        """A row for each form that was tried: the last one ended."""
        rows = []
        for form in self._form.jobs:
            self._say(f"      {form}")
            rows += self._job(form)
            if any(row["way"] == "cluster" and row["ended"] for row in rows):
                return rows
        raise Skipped("no job ended: " + ", ".join(self._form.jobs))

    def _job(self, form):
        words = ["--provider", self._provider(), "--program", self._program("mpi_scale"), "--forms", form, "--ways", self._form.job_ways, "--turns", 1,
                 "--rounds", 3, "--few", "--seconds", self._form.job_seconds]
        child = Child([sys.executable, "-B", os.path.join(build.TOP, _JOBS), *map(str, words)], without_settings())
        child.finish(2 * self._form.job_seconds + 120)
        names = next(([cell.strip() for cell in line.strip("|").split("|")] for line in child.output_lines if line.startswith("| form |")), None)
        if names is None:
            raise Skipped(child.failure_reason())
        found = []
        for line in child.output_lines:
            if line.startswith(f"| {form} |"):
                cells = dict(zip(names, (cell.strip() for cell in line.strip("|").split("|"))))
                numbers = {name: float(cells[name]) if cells[name] != "-" else -1.0 for name in ("start-up s", "barrier", "allreduce 8 B", "KB", "warnings")}
                found.append({"form": form, "way": cells["way"], "ended": numbers["start-up s"] > 0, "start_s": numbers["start-up s"],
                              "barrier_us": numbers["barrier"], "allreduce_us": numbers["allreduce 8 B"],
                              "kilobytes": numbers["KB"], "warnings": numbers["warnings"]})
        return found

    def _on(self, nodes):
        """The first nodes of the cluster."""
        if not self._made:
            self._made = temporary.make("perf", max(3, *self._form.matrix_nodes), suffix="-papers")
        return Place(BETWEEN, self._made, tuple(range(1, nodes + 1)))

    def _mpi(self, place, transport, ranks, words):
        return self._runner.mpirun(place, transport, ["-np", str(ranks), "--timeout", str(self._runner.limit)], self._runner.limit, words)

    def _matrix(self):
        """The medians of some jobs, in turns."""
        program, order, shape, rows = self._program("matmul"), self._form.matrix_order, self._form.matrix_nanoseconds, []
        for nodes in self._form.matrix_nodes:
            self._say(f"      {nodes} nodes")
            found = {way: [] for way in MATRIX_WAYS}
            for way in list(MATRIX_WAYS) * self._form.repetitions:
                said = "\n".join(self._mpi(self._on(nodes), _transport(MATRIX_WAYS[way], "crowd"), nodes, [program, str(order), "3", str(shape)]))
                if "PASS matmul" not in said:
                    raise Skipped(f"the product is wrong over {way}")
                found[way].append([float(text) for text in re.search(r"seconds (\S+) seconds_talking (\S+)", said).groups()])
            rows += [{"way": way, "nodes": nodes, "order": order, "nanoseconds": shape, "seconds": statistics.median(each[0] for each in runs),
                      "talking": statistics.median(each[1] for each in runs)} for way, runs in found.items()]
        return rows

    def _pairs(self):
        """What so many pairs reach together, medians, in turns. The processes of a node share a processor."""
        rows = []
        for many in self._form.pairs:
            self._say(f"      {many} pairs")
            found = {way: [] for way in self._form.pairs_ways}
            for way in list(found) * self._form.repetitions:
                found[way].append([self._together(many, _transport(PAIRS_WAYS[way], "fabric"), item) for item in PAIRS_ITEMS.values()])
            rows += [{"way": way, "pairs": many, **dict(zip(PAIRS_ITEMS, map(statistics.median, zip(*runs))))} for way, runs in found.items()]
        return rows

    def _together(self, many, transport, item):
        """The sum of what pairs reach that start at the same time."""
        place = self._on(2)
        words = [self._runner.program("fabric_perf"), "--provider", transport.provider, "--wait", "yield", "--milliseconds", str(self._form.pairs_milliseconds),
                 "--limit", str(self._runner.limit)]
        addresses = [["--node", place.address(side)] if transport.needs_address else [] for side in (0, 1)]

        def one(_):
            lines = self._runner.pair(place, transports.environment(transport, self._runner.build), words, [item.text()], addresses)
            return next(sample["value"] for sample in map(json.loads, lines) if "measure" in sample)

        with futures.ThreadPoolExecutor(many) as threads:
            return sum(threads.map(one, range(many)))

    def _solutions(self, place, way, orders, **settings):
        kind, name, wait = GAUSS_WAYS[way]
        transport = _transport(name, kind)
        transport = replace(transport, environment={**transport.environment, **settings})
        work = [str(order) for order in orders]
        if kind == "mpi":
            transport = self._runner.asleep(transport) if wait == "block" else transport
            lines = self._mpi(place, transport, 2, [self._program("gauss_mpi"), *work])
        else:
            words = [self._program("gauss_perf"), "--provider", transport.provider, "--wait", wait, "--limit", str(self._runner.limit)]
            lines = self._runner.pair(place, transports.environment(transport, self._runner.build), words, work)
        found = [json.loads(line) for line in lines if line.startswith('{"order"')]
        if [solution["order"] for solution in found] != list(orders) or not all(solution["right"] for solution in found):
            raise Skipped(f"a solution is wrong or missing: {way}")
        return found

    def _in_turns(self, field, names, solve):
        """The solutions that each name gives on two nodes, as medians by order."""
        found = {name: [] for name in names}
        for _ in range(self._form.repetitions):
            for name in names:
                self._say(f"      {name}")
                found[name].append(solve(self._on(2), name))
        return [{field: name, **_middle(runs)} for name, turns in found.items() for runs in zip(*turns)]

    def _gauss(self):
        return self._in_turns("way", self._form.gauss_ways, lambda place, way: self._solutions(place, way, self._form.gauss_orders))

    def _control(self):
        orders = (self._form.control_order,)
        return self._in_turns("at_once", self._form.control_sizes,
                              lambda place, size: self._solutions(place, "polling", orders, FI_CLUSTER_NET_EAGER=size))

    def _mailbox(self):
        """A ping-pong by mailboxes and without, the medians of some runs."""
        transport, program, runs = _transport("cluster/packet", "fabric"), self._program("example_pingpong"), []
        for _ in range(self._form.repetitions):
            place = self._on(2)
            sides = [Child(place.command(side, [program, str(side), "2", f"{place.address(0)}:{_MAILBOX_PORT}"]),
                           transports.environment(transport, self._runner.build)) for side in (0, 1)]
            if any(side.finish(self._runner.limit) != 0 for side in sides):
                raise Skipped(next(side for side in sides if side.process.returncode != 0).failure_reason())
            runs.append(re.findall(r"(\d+) bytes: mailbox +([\d.]+) us, fi_tsend +([\d.]+) us", "\n".join(sides[0].output_lines)))
        return [{"bytes": int(size[0][0]), "mailbox": statistics.median(float(run[1]) for run in size),
                 "plain": statistics.median(float(run[2]) for run in size)} for size in zip(*runs)]

    def _joined(self):
        """What two nodes reach directly, and through a relay on a third node when nothing else joins them. Medians, in turns."""
        transport, place = transports.with_key(_transport("cluster/udp", "fabric"), "/auth"), self._on(2)
        words = [self._runner.program("fabric_perf"), "--provider", transport.provider, "--wait", "spin", "--milliseconds",
                 str(self._form.pairs_milliseconds), "--limit", str(self._runner.limit)]
        relay_key = job_key.relay_key(transport.environment["FI_CLUSTER_KEY"])
        relay = Child(place.cluster.command(3, self._program("cluster-relay")), without_settings(), f"{relay_key}\n\n")
        try:
            relay.wait_for_line(place.cluster.address(3), _JOINED_SECONDS)
            found = {way: [] for way in JOINED_WAYS}
            for way in list(found) * self._form.repetitions:
                self._say(f"      {way}")
                with _parted(place.cluster) if way == "relay" else contextlib.nullcontext():
                    settings = {**transports.environment(transport, self._runner.build), "FI_CLUSTER_RELAYS": place.cluster.address(3)}
                    lines = self._runner.pair(place, settings, words, [item.text() for item in JOINED_ITEMS.values()])
                samples = [sample["value"] for sample in map(json.loads, lines) if "measure" in sample]
                found[way].append(samples[:len(JOINED_ITEMS)])
        finally:
            relay.finish(0)
        return [{"way": way, **dict(zip(JOINED_ITEMS, map(statistics.median, zip(*runs))))} for way, runs in found.items()]


@contextlib.contextmanager
def _parted(cluster):
    """Nodes 1 and 2 do not reach each other by UDP meanwhile. TCP remains, for what the programs arrange before they measure."""
    rules = [(node, ("to", cluster.address(3 - node), "ipproto", "udp", "unreachable")) for node in (1, 2)]
    for node, rule in rules:
        cluster.run(node, "ip", "rule", "add", *rule)
    try:
        yield
    finally:
        for node, rule in rules:
            cluster.run(node, "ip", "rule", "del", *rule)


def _middle(runs):
    """Solutions of one system: times are medians, all else is the same in each. The spread is a part of the seconds."""
    seconds = [run["seconds"] for run in runs]
    return {**runs[0], **{name: statistics.median(run[name] for run in runs) for name in ("seconds", "seconds_talking")},
            "spread": (max(seconds) - min(seconds)) / statistics.median(seconds) if len(seconds) > 1 and min(seconds) > 0 else 0}


def _transport(name, kind):
    return next(transport for transport in transports.choose(BETWEEN, [name], []) if transport.kind == kind)


def targets():
    """The programs to build, and those that need an MPI library."""
    return ["gauss_perf", "budget_frames", "cluster-ip", "cluster-relay", "example_pingpong"], ["gauss_mpi", "matmul", "mpi_scale", "sleeping_yield"]
