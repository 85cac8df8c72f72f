"""UCX has a measuring program of its own, ucx_perftest. Its printed figures are used unchanged: the median latency, and
overall rates. It never waits for answers, whereas the other programs wait once per window. Inside a node it puts into
and gets from the same place of memory that both sides map. So its figures are compared with shared mappings only, where
fabric_perf does the same."""
import os
import time

from cluster_lib.processes import listens

from .errors import Skipped
from .placement import processors
from .processes import Child
from .transports import INSIDE

_TESTS = {
    "latency": "tag_lat", "bandwidth": "tag_bw", "rate": "tag_bw", "put_latency": "ucp_put_lat", "put": "ucp_put_bw",
    "put_rate": "ucp_put_bw", "get_latency": "ucp_get", "get": "ucp_get", "fetch_add": "ucp_fadd",
    "fetch_add_latency": "ucp_fadd"}
_UNITS = {"latency": "us", "put_latency": "us", "get_latency": "us", "fetch_add_latency": "us", "bandwidth": "B/s",
          "put": "B/s", "get": "B/s", "rate": "1/s", "put_rate": "1/s", "fetch_add": "1/s"}
_MIB = 1e6 * 1.048576
_START_SECONDS, _RUN_SECONDS = 10, 60


def _general(measure):
    return measure.replace("_shared", "")


def knows(item, place):
    remote = item.measure.partition("_")[0] in ("put", "get")
    shared = "_shared" in item.measure
    return _general(item.measure) in _TESTS and (not remote or shared == (place == INSIDE))


def _iterations(item, milliseconds):
    """Enough to fill the time at 3 GB/s or 0.5 us each, whichever is more."""
    each = max(0.5e-6, item.bytes / 3e9)
    return max(8, int(milliseconds / 1e3 / each))


def _figures(item, csv, iterations, seconds):
    """The last line of the CSV: iterations, percentile, average and overall latency, bandwidths (MB = 2^20), rates."""
    fields = [float(field) for field in csv.split(",")]
    percentile, bandwidth, rate = fields[1], fields[5], fields[7]
    unit = _UNITS[_general(item.measure)]
    value = {"us": percentile, "B/s": bandwidth * _MIB, "1/s": rate}[unit]
    if unit == "B/s" and rate > 0:
        value = rate * item.bytes  # the printed bandwidth has two decimals only
    return {"measure": item.measure, "bytes": item.bytes, "window": item.window, "value": value, "unit": unit,
            "messages": iterations, "volume": iterations * item.bytes, "seconds": seconds}


def run(place, environment, item, milliseconds):
    """Returns one sample, or raises Skipped."""
    own, other = processors()
    port = 20000 + os.getpid() % 20000
    iterations = _iterations(item, milliseconds)
    what = ["-t", _TESTS[_general(item.measure)], "-s", str(item.bytes), "-n", str(iterations), "-w", str(max(4, iterations // 10)),
            "-O", str(item.window), "-f", "-v", "-p", str(port)]
    server = Child(place.command(1, ["ucx_perftest", "-c", str(other), "-p", str(port)]), environment)
    client = None
    try:
        end = time.monotonic() + _START_SECONDS
        while not listens(server.process.pid, port):
            if server.process.poll() is not None or time.monotonic() > end:
                server.finish(0)
                raise Skipped(server.failure_reason())
            time.sleep(0.01)
        started = time.monotonic()
        client = Child(place.command(0, ["ucx_perftest", place.address(1), "-c", str(own), *what]), environment)
        if client.finish(_RUN_SECONDS) != 0:
            raise Skipped(client.failure_reason())
        seconds = time.monotonic() - started
        server.finish(_START_SECONDS)
    finally:
        for child in (client, server):
            if child is not None and child.process.poll() is None:
                child.process.kill()
                child.process.wait()
    lines = [line for line in client.output_lines if line.count(",") == 7 and line.strip()[:1].isdigit()]
    if not lines:
        raise Skipped(f"ucx_perftest printed no figures for {item.text()}")
    return _figures(item, lines[-1], iterations, seconds)
