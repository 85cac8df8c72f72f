#!/usr/bin/env python3
"""The networks that people have, through real routers: in each of them MPI jobs, a checked stream and histories of remote memory
accesses, beside Open MPI over TCP and MPICH over tcp;ofi_rxm.

    networks.py --build BUILD [--row NAME]... [--short] [--seconds 8] [--list]

Each row is a network (layouts.py). Without --short it runs, one rank a node: mpi_check with Open MPI and MPICH, over the provider
and over what each library has without it; a stream between the first node and the last, whose bytes are checked; random histories
of remote accesses, and of operations on windows with both libraries, judged. In some rows something happens in mid-job. `first` is
the time until the first messages have gone both ways, `still` the longest time without a message after that. With --short it runs
the rows marked short, with Open MPI over the provider and the smaller part of mpi_check, and without histories. A row that is
`known` to fail names the reason; it counts as an error when it passes, and it has only mpi_check over the provider and the stream.
Times are those of a machine that has other work.
"""
import argparse
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

HERE = os.path.dirname(os.path.realpath(__file__))
for part in ("mpi", "life"):
    sys.path.insert(0, os.path.join(HERE, "..", part))
import layouts  # noqa: E402
import life_process  # noqa: E402
import run_mpi  # noqa: E402
import window_histories  # noqa: E402
from life_process import Life, Process, virtual_nodes  # noqa: E402

SIZES = (8, 1400, 20_000, 300_000)  # in less than a frame, one, several, by rendezvous
SHORT_SECONDS, CUT_AFTER_SECONDS, AFTERWARDS_SECONDS = 1.5, 1.0, 3.0
STILL_MAX_SECONDS = 60  # of a round of the stream; then the row has failed
JOB_SECONDS = 150
UNTIL_OVER = "UNTIL-OVER"
COMMAND_MAX = 15  # bytes of a program's name that the kernel keeps
SHORT_OUTAGE, LONG_OUTAGE = 8, 45
UNEXPECTED = "not as expected:"
CACHE = Path(HERE).parents[1] / "build" / "cores"  # of the libraries from PyPI
# Column of mpi_check, library, path of run_mpi.py. Only those over the provider have to pass.
WAYS = (("Open MPI", "openmpi4", "cluster"), ("Open MPI over TCP", "openmpi4", "tcp"), ("MPICH", "mpich", "cluster"),
        ("MPICH over tcp;ofi_rxm", "mpich", "rxm"))
HANGS = {"rxm": ("truncation",)}  # path -> tests of mpi_check in which it hangs on every network
# MPICH's launcher knows only IPv4.
WINDOWS = ("openmpi5", "mpich")  # libraries of the column `windows`
WINDOW_KINDS, WINDOW_SYNCS, WINDOW_ROUNDS = "allocate,create,dynamic", "fence,pscw,lock,flush", 8
WINDOWS_LONGER = 48  # where something happens in mid-job


@dataclasses.dataclass
class Row:
    name: str
    make: Callable
    short: bool = False
    known: str = ""  # why it fails
    says: str = ""  # what the log must say then, within `still` seconds of the first message
    still: float = 3.0  # the bound, besides what happens in mid-job
    first: float = 3.0  # the bound of the first messages


ROWS = [
    Row("one switch, nothing special", layouts.plain),
    Row("20 interfaces of mixed kinds", layouts.twenty_interfaces),
    Row("VLAN", layouts.vlan),
    Row("macvlan on hosts without an address", layouts.macvlan),
    Row("IPv6 only, through a router", layouts.ipv6_only, short=True),
    Row("VXLAN between two networks", layouts.vxlan),
    Row("tunnel like WireGuard", layouts.tunnel_without_hardware_addresses),
    Row("MTU 9000, a hop of 1500 that drops silently", layouts.narrow_silent_hop),
    Row("asymmetric routes, each router forwards one way", layouts.asymmetric_routes, short=True, first=1.0),
    Row("stateful firewall, one side may begin", layouts.one_way_firewall, short=True),
    Row("firewalls that pass a range of ports, packet", layouts.range_of_ports_by_packet),
    Row("firewalls that pass a range of ports, udp", layouts.range_of_ports_by_udp),
    Row("switch reboots", layouts.rebooting_switch),
    Row("three networks, one of two routers dies", layouts.killed_router, still=5.0),
    Row("address translation on one side, with a key", layouts.translation_with_a_key, short=True),
    Row("translator changes its ports in mid-job", layouts.translator_changes_its_ports, short=True),
    Row("three networks joined by two relays, one of which dies", layouts.relays_between_networks, still=2.0),
    Row("translators on both sides, and a relay", layouts.relay_between_translators),
    Row("address translation on one side, without a key", layouts.translation_without_a_key, short=True,
        known="without a key, nothing proves who the caller is (docs/design/28-translation.md)",
        says="a router between the nodes changes this node's address"),
]


class Failed(Exception):
    """A part of a row fails; the text says how."""


class Cut(threading.Thread):
    """What happens in mid-job, while the job runs. `program`: it happens once each rank of this program has begun."""

    def __init__(self, network, program=None):
        super().__init__(daemon=True)
        self.network, self.program = network, program
        self.begun, self.done, self.over = threading.Event(), threading.Event(), threading.Event()
        self.lasted = 0.0  # from the cut to the end of what mends it
        self.directory = tempfile.TemporaryDirectory(prefix="networks-")
        self.file = os.path.join(self.directory.name, "over")  # exists some seconds after everything has happened

    def __enter__(self):
        if self.network.cut:
            self.start()
        return self

    def all_run(self):
        """Whether the program runs in the node of each rank."""
        wanted = {os.readlink(self.network.cluster.namespace(node)) for node in range(1, self.network.ranks + 1)}
        for pid in subprocess.run(["pgrep", "-x", self.program], capture_output=True, text=True, check=False).stdout.split():
            try:
                wanted.discard(os.readlink(f"/proc/{pid}/ns/net"))
            except OSError:  # it has ended
                continue
        return not wanted

    def run(self):
        while self.program and not self.all_run():
            if self.over.wait(0.2):
                return
        time.sleep(CUT_AFTER_SECONDS)
        since = time.monotonic()
        self.begun.set()
        self.network.cut()
        if self.network.away:
            time.sleep(self.network.away)
            self.network.mend()
        self.lasted = time.monotonic() - since
        self.done.set()
        self.over.wait(AFTERWARDS_SECONDS)
        Path(self.file).touch()

    def goes_on(self):
        return self.network.cut is not None and not self.done.is_set()

    def __exit__(self, *_):
        if self.network.cut:
            self.over.set()
            self.join()
            if self.done.is_set() and not self.network.away:
                self.network.mend()
        self.directory.cleanup()


class Stream:
    """Messages of all kinds there and back between two nodes."""

    def __init__(self, network):
        self.network = network
        self.ends = [Process(network.cluster.command(node), FI_LOG_LEVEL="warn", **network.settings) for node in (1, network.ranks)]
        self.seed, self.rounds, self.begun, self.first, self.still, self.away = 0, 0, 0.0, 0.0, 0.0, 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in self.ends:
            end.close()

    def send(self, one, other, handle):
        """One message of each size, all at a time."""
        expected, sent = set(), []
        for size in SIZES:
            self.seed += 1
            expected.add((self.seed, size))
            sent.append(f"m{self.seed}")
            one.do(f"say {sent[-1]} {size} {handle} {self.seed}")
        deadline = time.monotonic() + STILL_MAX_SECONDS
        while not other.until(lambda: expected <= set(other.got), 0.2):
            one.take()
            self.check(one, [operation for operation in sent if operation in one.ends])
            if time.monotonic() > deadline:
                raise Failed(f"messages do not arrive within {STILL_MAX_SECONDS} s: {first_warning(self.log()) or 'no word in the log'}")
        other.got.clear()
        self.check(one, sent)

    def check(self, one, operations):
        for operation in operations:
            error, _, text = one.end(operation) or (1, 0, "a send does not end")
            if error != 0:
                raise Failed(f"{text}: {first_warning(self.log()) or 'no word in the log'}")

    def round(self, handles):
        """The last node begins: in some networks only it can."""
        since = time.monotonic()
        self.send(*self.ends[::-1], handles[1])
        self.send(*self.ends, handles[0])
        return time.monotonic() - since

    def run(self, seconds):
        for end in self.ends:
            end.do(f"keep {2 * len(SIZES)} {max(SIZES)}")
        handles = self.ends[0].peer(self.ends[1].name), self.ends[1].peer(self.ends[0].name)
        self.begun = time.monotonic()
        self.first = self.round(handles)
        with Cut(self.network) as cut:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                going_on = cut.goes_on()
                self.still = max(self.still, self.round(handles))
                self.rounds += 1
                if going_on:
                    until = max(until, time.monotonic() + AFTERWARDS_SECONDS)
        self.away = cut.lasted

    def log(self):
        return "".join(end.log() for end in self.ends)


def judge_loss(row, stream, failure):
    """A row that is known to fail does so soon, and names the cause; otherwise it is an error of its own."""
    took = time.monotonic() - stream.begun
    text = f"{failure} (after {took:.1f} s)"
    soon = took <= row.still * life_process.LATE
    return text if soon and row.says in stream.log() else f"{UNEXPECTED} {text}"


def first_warning(log):
    """The first warning of the provider, without what names one process."""
    found = re.search(r"libfabric:\S*cluster:\S*<warn> *(.*)", log)
    return found.group(1).strip() if found else ""


def job(network, library, path, program):
    """The options of run_mpi.py for a program with one rank on each node."""
    words = ["--library", library, "--cache", str(CACHE), "--nodes", str(network.ranks), "--ranks", str(network.ranks), "--path", path,
             "--provider", Life.plugin, "--seconds", str(JOB_SECONDS)]
    if library == "mpich":
        settings = {"HYDRA_IFACE": network.interface, **(network.rxm_settings if path == "rxm" else {})}
    else:
        settings = {}
        for setting in (*network.mca, *(network.tcp_mca if path == "tcp" else ())):
            words += ["--mca", setting]
    for name, value in {**settings, **network.settings}.items():
        words += ["--set", f"{name}={value}"]
    return run_mpi.parser().parse_args([*words, "--", *program])


def finish(title, options, network, log, passed):
    """Runs the job; returns how long it took. In mid-job something happens to the network, if it is such a network. The word
    UNTIL_OVER of the program becomes the file that exists from then on."""
    library = run_mpi.LIBRARIES[options.mpi]
    program = os.path.basename(options.program[0]) + (f".{library.compiler}" if library.wheel else "")
    since = time.monotonic()
    with Cut(network, program[:COMMAND_MAX]) as cut:
        options.program = [cut.file if word == UNTIL_OVER else word for word in options.program]
        status, output, sums = run_mpi.launch(options, network.cluster)
        took = time.monotonic() - since
        too_soon = network.cut is not None and not cut.begun.is_set()
    log.append(f"--- {title}\n{output}")
    wrong = run_mpi.missing(options, output, sums) if options.path == "cluster" and status == 0 else []
    if status != 0 or passed not in output or wrong:
        said = [line.removeprefix("FAIL: ") for line in output.splitlines() if line.startswith("FAIL") or "ended after" in line]
        raise Failed("; ".join([*said[:1], *wrong[:1], first_warning(output)]).strip("; ") or f"exit status {status}")
    return f"{took:.1f} s" + (" (it ended too soon)" if too_soon else "")


def mpi(options, network, way, log):
    """How long mpi_check took."""
    title, library, path = way
    program = "mpi_check" if library == "mpich" else os.path.join(Life.build, "fabtests", "mpi", "mpi_check")
    words = [program, "--rounds", "1", *(["--until", UNTIL_OVER] if network.cut else []), "--timeout", str(JOB_SECONDS - 10), *(["--only", "point"] if options.short else []),
             *(word for test in HANGS.get(path, ()) for word in ("--skip", test))]
    return finish(f"mpi_check: {title}", job(network, library, path, words), network, log, "PASS mpi_check")


def windows(network, log):
    """Random histories of operations on windows, with each library."""
    seconds = []
    for library in WINDOWS if network.family == 4 else WINDOWS[:1]:
        seed = window_histories.seed_of_commit([library, network.cluster.name])
        with tempfile.TemporaryDirectory(prefix="networks-") as directory:
            words = ["mpi_histories", WINDOW_KINDS, WINDOW_SYNCS, str(WINDOW_ROUNDS * (WINDOWS_LONGER if network.cut else 1)), str(seed), directory]
            try:
                took = finish(f"windows: {library}, seed {seed}", job(network, library, "cluster", words), network, log,
                              "PASS mpi_histories")
            except Failed as failure:
                raise Failed(f"{library}: {failure}") from failure
            files = sorted(map(str, Path(directory).glob("*.history")))
            done = subprocess.run([os.path.join(Life.build, "fabtests", "litmus", "judge_histories"), *files], capture_output=True,
                                  text=True, check=False)
        log.append(done.stdout[-6000:])
        if done.returncode or len(files) != network.ranks:
            raise Failed(f"{library}: the histories have no order, or are not complete")
        seconds.append(f"{library} {took}")
    return ", ".join(seconds)


def histories(network, log):
    """Seconds of random histories between the same nodes."""
    revision = subprocess.run(["git", "-C", HERE, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    environment = virtual_nodes.of_provider(Life.plugin, **network.settings)
    environment |= {"CONFORMANCE_NETNS_A": network.cluster.namespace(1), "CONFORMANCE_NETNS_B": network.cluster.namespace(network.ranks),
                    "CONFORMANCE_FAMILY": str(network.family)}
    since = time.monotonic()
    command = [os.path.join(Life.build, "fabtests", "litmus", "histories"), "--gtest_brief=1", "--batches", "2", "--sides", "2", "--seed-of",
               f"{network.cluster.name} {revision}"]
    try:
        done = subprocess.run(network.cluster.command(1, *command), env=environment, capture_output=True, text=True, check=False,
                              timeout=JOB_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"no end within {JOB_SECONDS} s") from late
    log.append(f"--- histories\n{done.stdout}{done.stderr}")
    if done.returncode != 0:
        raise Failed(f"exit status {done.returncode}")
    return time.monotonic() - since


class Result:
    """What a row shows, one cell for each part."""

    def __init__(self, row, parts):
        self.parts = parts  # empty: all
        self.row, self.cells, self.failures, self.log, self.warning = row, {}, [], [], ""

    def part(self, name, run, counts=True):
        if self.parts and name not in self.parts:
            return
        try:
            self.cells[name] = run()
        except (Failed, RuntimeError) as failure:
            text = str(failure).splitlines()[0][:200]
            self.cells[name] = f"fails: {text}"
            if counts:
                self.failures.append(f"{name}: {text}")

    def stream(self, network, seconds):
        with Stream(network) as stream:
            try:
                stream.run(seconds)
            except Failed as failure:
                raise Failed(judge_loss(self.row, stream, failure) if self.row.says else str(failure)) from failure
            finally:
                self.log.append(f"--- stream\n{stream.log()}")
                self.warning = first_warning(stream.log())
            bound = self.row.still * life_process.LATE + stream.away
            if stream.still > bound:
                raise Failed(f"no message for {stream.still:.1f} s, which is more than {bound:.1f} s")
            if stream.first > self.row.first * life_process.LATE:
                raise Failed(f"the first messages took {stream.first:.1f} s, which is more than {self.row.first:.1f} s")
        messages = 2 * len(SIZES) * (stream.rounds + 1)
        return f"{messages} messages, first {stream.first:.1f} s, still {stream.still:.1f} s"


def run_row(options, row):
    result = Result(row, options.parts)
    make = row.make
    if make is layouts.rebooting_switch:
        def make():
            return layouts.rebooting_switch(SHORT_OUTAGE if options.short else LONG_OUTAGE)
    network = make()
    try:
        if not (options.short and row.known):
            ways = WAYS[:1] if options.short else WAYS if network.family == 4 else WAYS[:2]
            for way in (way for way in ways if way[2] == "cluster" or not row.known):
                result.part(way[0], lambda way=way: mpi(options, network, way, result.log), counts=way[2] == "cluster")
        result.part("stream", lambda: result.stream(network, SHORT_SECONDS if options.short else options.seconds))
        if not options.short and not row.known:
            result.part("histories", lambda: f"{histories(network, result.log):.1f} s")
            result.part("windows", lambda: windows(network, result.log))
    finally:
        network.down()
    result.cells["set"] = " ".join(f"{name}={value}" for name, value in network.settings.items()) or "nothing"
    result.cells["first warning"] = result.warning or "none"
    return result


def print_table(results):
    columns = list(dict.fromkeys(name for result in results for name in result.cells))
    print("\n| network | " + " | ".join(columns) + " |\n|" + "---|" * (1 + len(columns)))
    for result in results:
        name = result.row.name + (f" (known: {result.row.known})" if result.row.known else "")
        print("| " + " | ".join([name, *(str(result.cells.get(column, "")).replace("|", "/") for column in columns)]) + " |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--row", dest="rows", action="append", metavar="NAME", help="rows whose name contains this (may be repeated)")
    parser.add_argument("--short", action="store_true", help="the form of the check")
    parser.add_argument("--seconds", type=float, default=8, help="of a stream, besides what happens in it (default: %(default)s)")
    parser.add_argument("--part", dest="parts", action="append", metavar="COLUMN", help="runs only this column (may be repeated)")
    parser.add_argument("--list", action="store_true", help="names the rows")
    parser.add_argument("--verbose", action="store_true", help="prints what the programs of each row print")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = [row for row in ROWS if (row.short or not options.short or options.rows)
              and any(word in row.name for word in options.rows or [""])]
    if options.list:
        print("\n".join(row.name + (f" (known: {row.known})" if row.known else "") for row in chosen))
        return 0
    Life.build = os.path.abspath(options.build)
    Life.plugin = os.path.join(Life.build, "prov", "cluster")
    Life.program = os.path.join(Life.build, "fabtests", "life", "life_peer")
    virtual_nodes.require("mpirun", "nft", "ip")
    results, wrong, not_here = [], 0, 0
    for row in chosen:
        since = time.monotonic()
        try:
            result = run_row(options, row)
        except layouts.NotHere as reason:
            print(f"not here: {row.name}: {reason}", flush=True)
            not_here += 1
            continue
        results.append(result)
        failed = bool(result.failures) != bool(row.known) or any(UNEXPECTED in each for each in result.failures)
        wrong += failed
        verdict = "FAIL" if failed else "known" if row.known else "ok"
        print(f"{verdict}: {row.name}, {time.monotonic() - since:.0f} s: {result.cells}", flush=True)
        if row.known and not result.failures:
            print(f"   it passes now, so `known` can go: {row.known}")
        if failed or options.verbose:
            print("\n".join(result.log)[-20_000:], flush=True)
    if results:
        print_table(results)
    print(f"{len(results)} networks, {wrong} failed, {not_here} not here")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
