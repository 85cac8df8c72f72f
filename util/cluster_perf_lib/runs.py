"""One run: one group of measures over one transport in one place. Returns samples as dictionaries."""
import json
import os
import shutil
import signal

from cluster_lib import build

from . import transports, ucx
from .errors import Skipped
from .placement import processors
from .processes import Child

_START_SECONDS = 20
_OVERTIME = 110  # status of Open MPI's mpirun when --timeout has ended the job


class Runner:
    """Knows the programs of the build."""

    def __init__(self, directory, milliseconds, limit):
        self.build = directory
        self.milliseconds = milliseconds
        self.limit = limit  # seconds for one run of one group
        self.crowd = transports.CROWD_RANKS  # ranks of the jobs of kind `crowd`

    def program(self, name):
        return build.path(name, self.build)

    def run(self, place, transport, group):
        """The samples of one run; raises Skipped if the transport cannot do this here."""
        items = [item for item in group.items if item.bytes <= transport.bytes_max]
        if not items:
            return []
        try:
            place.set_agents(transport.agents)
            place.set_ip(self.build if transport.over_ip else None)
        except RuntimeError as error:
            raise Skipped(str(error)) from error
        if transport.kind in ("mpi", "crowd"):
            chosen = self.asleep(transport) if group.wait == "block" else transport
            return self._mpi(place, chosen, items, self.crowd if transport.kind == "crowd" else 2)
        if transport.kind == "ucx":
            return self._ucx(place, transport, items)
        return self._pair(place, transport, items, group.wait)

    def asleep(self, transport):
        """The transport of an MPI library whose ranks sleep while they wait."""
        library = "" if build.installed else os.path.realpath(self.program("sleeping_yield"))
        if not os.path.exists(library):
            raise Skipped("sleeping_yield is not built: it belongs to the tests of the source tree")
        return transports.asleep(transport, library)

    def distance(self):
        """The nanoseconds that a cache line takes between the two processors; 0 if unknown."""
        own, other = processors()
        child = Child([self.program("bare_perf"), "--distance", "--cpu", str(own), "--other-cpu", str(other)], None)
        return float(child.output_lines[-1]) if child.finish(20) == 0 and child.output_lines else 0.0

    def _pair(self, place, transport, items, wait):
        words = ["--milliseconds", str(self.milliseconds), "--limit", str(self.limit), *transport.arguments]
        if transport.kind == "fabric":
            words += ["--provider", transport.provider, "--wait", wait]
        addresses = [["--node", place.address(side, transport.over_ip)] if transport.needs_address else [] for side in (0, 1)]
        program = self.program("bare_perf" if transport.kind == "bare" else "fabric_perf")
        lines = self.pair(place, transports.environment(transport, self.build), [program, *words], [item.text() for item in items],
                          addresses, ["--other-cpu", str(processors()[1])])
        return [sample for sample in map(json.loads, lines) if "measure" in sample]

    def pair(self, place, environment, words, work, addresses=((), ()), of_caller=()):
        """The lines that the calling one of two sides prints; raises Skipped if either fails."""
        own, other = processors()

        def side(number, cpu, *more):
            return Child(place.command(number, [*words, *addresses[number], "--cpu", str(cpu), *more, *work]), environment)

        server = side(1, other)
        client = None
        try:
            port = server.wait_for_line("port ", _START_SECONDS).split()[1]
            call = "127.0.0.1" if place.name == transports.INSIDE else place.address(1)
            client = side(0, own, *of_caller, "--call", f"{call}:{port}")
            status = client.finish(self.limit + _START_SECONDS)
            if status != 0:
                if server.process.poll() is None:
                    server.finish(1)
                raise Skipped(self._why(client, server, status))
            server.finish(_START_SECONDS)
        finally:
            for child in (client, server):
                if child is not None and child.process.poll() is None:
                    child.process.kill()
                    child.process.wait()
        return client.output_lines

    def _why(self, client, server, status):
        if status in (None, _OVERTIME) or -signal.SIGALRM in (status, server.process.returncode):
            return f"no end within {self.limit} s"
        blame = server if status == 1 and server.process.returncode not in (0, 1, None, -9) else client
        return blame.failure_reason()

    def _mpi(self, place, transport, items, ranks):
        if shutil.which("mpirun") is None or not os.path.exists(self.program("mpi_perf")):
            raise Skipped("no Open MPI here (Debian: openmpi-bin, libopenmpi-dev, then build again)")
        own, other = processors()
        peer = "127.0.0.1" if place.name == transports.INSIDE else place.address(1)
        lines = self.mpirun(place, transport, ["-np", str(ranks), "--timeout", str(self.limit)], self.limit,
                            [self.program("mpi_perf"), "--peer", peer, "--milliseconds", str(self.milliseconds),
                             "--limit", str(self.limit), "--cpus", f"{own},{other}", *[item.text() for item in items]])
        return [json.loads(line) for line in lines if line.startswith('{"measure"')]

    def mpirun(self, place, transport, options, limit, program):
        """The lines that an MPI job over the transport prints; raises Skipped if it fails."""
        child = Child(place.mpirun([*options, *transport.arguments, *program]), transports.environment(transport, self.build))
        status = child.finish(limit + _START_SECONDS)
        if status in (None, _OVERTIME):
            raise Skipped(f"no end within {limit} s")
        if status != 0:
            raise Skipped(child.failure_reason())
        return child.output_lines

    def _ucx(self, place, transport, items):
        if shutil.which("ucx_perftest") is None:
            raise Skipped("no ucx_perftest here (Debian: ucx-utils; util/setup --for perf)")
        samples = []
        for item in items:
            if not ucx.knows(item, place.name):
                continue
            before = self.distance()
            sample = ucx.run(place, transports.environment(transport, self.build), item, self.milliseconds)
            samples.append({**sample, "line_ns": [before, self.distance()]})
        return samples
