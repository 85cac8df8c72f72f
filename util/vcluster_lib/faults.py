"""Fault injection at the ports of the switch, per node, rail and direction.

A *place* is one direction of one port: `n2r0/to` is on the way to node2 on rail 0, `n2r0/from` comes from it. Each
place with faults has a program in the kernel (native/faults.bpf.c) with a map of settings and one of counts; vcluster
writes new settings into the map while frames pass. Delayed frames go through a process in the switch's namespace
(native/delay_queue.cc). A token bucket implements rate and buffer: behind the program on the way to a node, in front of
the node's own interface on the way from it.

No super-frame passes a place whole: a pair of interfaces in the switch cuts them before, so that frames are lost one by
one, as on a wire.
"""
import contextlib
import json
import os
import signal
import struct
import subprocess

from . import bpf, namespaces, native_build, network, processes, state
from .errors import VclusterError

DIRECTIONS = ("to", "from")
ONLY = ("all", "udp", "ethertype")  # by number, as in native/faults.h
COUNTS = ("seen", "lost", "duplicated", "corrupted", "reordered", "delayed", "overrun", "longest_gap_ns")  # struct fault_counts
_SETTINGS_LAYOUT = "=12Q"
_COUNTS_LAYOUT = "=10Q"  # the program uses two more itself
_ALWAYS = 2**32
_HOOK = {"to": "egress", "from": "ingress"}
_MARK = {"to": 0x56430001, "from": 0x56430002}
_READY_SECONDS = 20


def _port(place):
    return place.partition("/")[0]


def _direction(place):
    return place.partition("/")[2]


def _numbers(place):
    node, _, rail = _port(place)[1:].partition("r")
    return int(node), int(rail)


def place_of(node, rail, direction):
    return f"n{node}r{rail}/{direction}"


def _tc(record, *words):
    return namespaces.run_in(record["switch"], ["tc", *words], kinds=("net",))


def _burst_probability(loss, burst):
    """The probability with which a frame outside of runs must begin a run of `burst` losses, so that the share `loss`
    of all frames is lost."""
    return loss / (burst * (1 - loss) + loss) if loss else 0


def _packed(record, place, settings):
    share = {name: round(settings[name] * _ALWAYS) for name in ("duplicate", "corrupt", "reorder")}
    return struct.pack(
        _SETTINGS_LAYOUT, round(_burst_probability(settings["loss"], settings["burst"]) * _ALWAYS), settings["burst"],
        share["duplicate"], share["corrupt"], share["reorder"], settings["reorder_ns"], settings["delay_ns"],
        settings["jitter_ns"], ONLY.index(settings["only"]), _direction(place) == "from",
        settings["whole"], record["cutter"])


def _load(record, device, hook, section):
    if "clsact" not in _tc(record, "qdisc", "show", "dev", device):
        _tc(record, "qdisc", "add", "dev", device, "clsact")
    _tc(record, "filter", "add", "dev", device, hook, "bpf", "direct-action", "object-file",
        native_build.built("faults.bpf.c"), "section", section)


def _attach(record, place):
    """Attaches the program at its place; returns the ids of its maps."""
    port, hook = _port(place), _HOOK[_direction(place)]
    _load(record, port, hook, "tc")
    shown = json.loads(_tc(record, "-json", "filter", "show", "dev", port, hook))
    program = next(filter_["options"]["prog"]["id"] for filter_ in shown if "options" in filter_)
    return {name.removesuffix("_map"): number for name, number in bpf.maps_of(program).items()}


def _shaped(record, place):
    """The holder and the device whose queue limits this direction."""
    node, rail = _numbers(place)
    return (record["switch"], _port(place)) if _direction(place) == "to" else (record["nodes"][node - 1], f"eth{rail}")


def _set_rate(record, place, rate, buffer):
    if rate:
        network.shape(*_shaped(record, place), rate, buffer, record["mtu"])
    else:
        network.restore_shape(*_shaped(record, place), record)


def _update_segmenter(record, wanted):
    """The cutter exists while there are faults."""
    if wanted and "cutter" not in record:
        record["cutter"] = network.make_segmenter(record["switch"], record["mtu"])
        _load(record, "cut", "ingress", "tc/cut")
    elif not wanted and "cutter" in record:
        network.remove_segmenter(record["switch"])
        del record["cutter"]


def _holds(entry):
    return bool(entry["settings"]["reorder"] or entry["settings"]["delay_ns"])


def _stop_delay_queue(record):
    holder = record.pop("delay_queue", None)
    if holder is None or processes.start_time(holder["pid"]) != holder["start"]:
        return
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(holder["pid"])
        signal.pidfd_send_signal(handle, signal.SIGTERM)  # sends all held frames at once
        processes.wait_all([handle], _READY_SECONDS)
        os.close(handle)


def _update_delay_queue(record):
    """Starts one delay queue process for all places that delay frames; replaces it when the places change."""
    wanted = {place: entry for place, entry in record["faults"].items() if _holds(entry)}
    holder = record.get("delay_queue")
    if holder and holder["places"] == sorted(wanted) and processes.start_time(holder["pid"]) == holder["start"]:
        return
    _stop_delay_queue(record)
    if not wanted:
        return
    words = [f"{entry['maps']['waiting']}:{_output_device(place)}:{_MARK[_direction(place)]}" for place, entry in wanted.items()]
    process = subprocess.Popen(
        [native_build.built("delay_queue.cc"), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, cwd="/",
        env={"PATH": os.environ.get("PATH", ""), state.MARK: record["id"], "VCLUSTER_NAME": record["name"]},
        preexec_fn=lambda: namespaces.enter(record["switch"], ("net",)))
    if process.stdout.readline() != "ready\n":
        raise VclusterError(f"the delay queue does not start: {process.stderr.read().strip() or 'no reason given'}")
    record["delay_queue"] = {"label": "the delay queue", "pid": process.pid,
                              "start": processes.start_time(process.pid), "places": sorted(wanted)}


def _output_device(place):
    """Frames to a node go on through its port; frames from a node go through the bridge, which finds the port."""
    return _port(place) if _direction(place) == "to" else f"rail{_numbers(place)[1]}"


def apply(record, places, settings, rate=None, buffer=None):
    """Sets exactly these faults at these places; counts restart at zero."""
    entries = record.setdefault("faults", {})
    _update_segmenter(record, True)
    for place in places:
        if place not in entries:
            entries[place] = {"maps": _attach(record, place), "rate": None, "buffer": None}
        entries[place]["settings"] = settings
        state.save(record)
    _update_delay_queue(record)
    for place in places:
        entry = entries[place]
        if (rate, buffer) != (entry["rate"], entry["buffer"]):
            _set_rate(record, place, rate, buffer)
            entry["rate"], entry["buffer"] = rate, buffer
        bpf.write(entry["maps"]["counts"], bytes(struct.calcsize(_COUNTS_LAYOUT)))
        bpf.write(entry["maps"]["settings"], _packed(record, place, settings))
    state.save(record)


def clear(record, places):
    """Removes all faults from these places."""
    entries = record.setdefault("faults", {})
    for place in [place for place in places if place in entries]:
        if entries[place]["rate"]:
            _set_rate(record, place, None, None)
        _tc(record, "filter", "del", "dev", _port(place), _HOOK[_direction(place)])
        del entries[place]
        state.save(record)
    _update_delay_queue(record)
    _update_segmenter(record, bool(entries))
    state.save(record)


def _tail_drops(record, place):
    holder, device = _shaped(record, place)
    shown = json.loads(namespaces.run_in(holder, ["tc", "-s", "-json", "qdisc", "show", "dev", device, "root"],
                                         kinds=("net",)))
    return sum(qdisc.get("drops", 0) for qdisc in shown)


def describe(record):
    """The settings and the counts of each place."""
    described = []
    for place, entry in sorted(record.get("faults", {}).items(), key=lambda item: (_numbers(item[0]), item[0])):
        node, rail = _numbers(place)
        values = struct.unpack(_COUNTS_LAYOUT, bpf.read(entry["maps"]["counts"], struct.calcsize(_COUNTS_LAYOUT)))
        counts = dict(zip(COUNTS, values))
        if entry["rate"]:
            counts["tail_drops"] = _tail_drops(record, place)
        described.append({"node": f"node{node}", "rail": rail, "direction": _direction(place),
                          "settings": {**entry["settings"], "rate": entry["rate"], "buffer": entry["buffer"]},
                          "counts": counts})
    return described
