"""`vcluster faults`: options, help and output."""
import argparse
import json

from . import faults, native_build, state, units
from .errors import VclusterError

_EPILOG = """\
Without --clear or --list, the given faults replace all earlier faults at the chosen places, and the counters start again
at 0. Use `--loss 0` only to count frames. You can change faults while a job runs.

Each frame passes two places: it comes `from` the sending node and goes `to` the receiving node. By default, faults are
set only on the way to a node, so that each frame meets them once.

examples:
  vcluster faults --loss 1% --reorder 2%               everywhere
  vcluster faults --nodes 2 --loss 10% --only udp      towards node2; TCP passes unharmed
  vcluster faults --loss 100% --only ethertype          drops every frame with EtherType 0x88b5
  vcluster faults --nodes 1 --rate 1gbit --buffer 64k  the port of node1 is slow and has a small queue
  vcluster faults --delay 1ms --jitter 200us           a long cable
  vcluster faults --list                               how many frames each fault has hit
  vcluster faults --clear"""


def add_parser(commands, with_name):
    parser = with_name(commands.add_parser(
        "faults", help="lose, duplicate, reorder, damage and delay frames", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Injects faults into the network of a running cluster."))
    where = parser.add_argument_group("where")
    where.add_argument("--nodes", metavar="NODES", help="only the ports of these nodes, such as node1,node3 (default: all)")
    where.add_argument("--rails", metavar="RAILS", help="only these rails, such as 0,1 (default: all)")
    where.add_argument("--direction", choices=("to", "from", "both"),
                       help="frames that go to the nodes or come from them (default: to; with --clear both)")
    what = parser.add_argument_group("what")
    what.add_argument("--loss", metavar="SHARE", help="frames that get lost, in percent, such as 1%% or 0.1")
    what.add_argument("--burst", type=int, metavar="N", help="losses come in runs of N frames (default: 1)")
    what.add_argument("--duplicate", metavar="SHARE", help="frames that arrive twice")
    what.add_argument("--corrupt", metavar="SHARE", help="frames in which one bit is flipped")
    what.add_argument("--reorder", metavar="SHARE", help="frames that are held back while others pass")
    what.add_argument("--reorder-by", metavar="TIME", help="how long --reorder holds a frame back (default: 300us)")
    what.add_argument("--delay", metavar="TIME", help="how much longer every frame takes, such as 1ms")
    what.add_argument("--jitter", metavar="TIME", help="make the delay longer or shorter by a random time of at most this (at most --delay)")
    what.add_argument("--rate", metavar="RATE", help="limit of the rate, such as 1gbit")
    what.add_argument("--buffer", metavar="BYTES", help="size of the queue of --rate, such as 64k")
    what.add_argument("--only", choices=faults.ONLY, default="all",
                      help="limit all faults, except --rate, to UDP, or to the cluster provider's frames with "
                      "EtherType 0x88b5, which udp includes (default: %(default)s)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--clear", action="store_true", help="remove all faults at the chosen places")
    instead.add_argument("--list", action="store_true", help="show the faults and the counters")
    parser.add_argument("--json", action="store_true", help="with --list: for programs")


_WHAT = ("loss", "burst", "duplicate", "corrupt", "reorder", "reorder_by", "delay", "jitter", "rate", "buffer")
_SHAPE = ("rate", "buffer")  # these work without looking at single frames


def _places(record, options):
    nodes = range(1, record["size"] + 1)
    if options.nodes:
        nodes = [record["nodes"].index(state.node(record, text)) + 1 for text in options.nodes.split(",")]
    rails = range(record["rails"])
    if options.rails:
        words = options.rails.split(",")
        if not all(word.isdigit() and int(word) < record["rails"] for word in words):
            raise VclusterError(f"--rails {options.rails}: cluster '{record['name']}' has 0 to {record['rails'] - 1}")
        rails = [int(word) for word in words]
    direction = options.direction or ("both" if options.clear else "to")
    directions = faults.DIRECTIONS if direction == "both" else (direction,)
    return [faults.place_of(node, rail, way) for node in nodes for rail in rails for way in directions]


def _settings(options):
    values = {name: units.share(f"--{name}", getattr(options, name) or "0")
              for name in ("loss", "duplicate", "corrupt", "reorder")}
    values["burst"] = 1 if options.burst is None else options.burst
    if not 1 <= values["burst"] <= 10_000:
        raise VclusterError(f"--burst {options.burst}: allowed are 1 to 10000")
    values["reorder_ns"] = units.time_ns("--reorder-by", options.reorder_by or "300us")
    values["delay_ns"] = units.time_ns("--delay", options.delay or "0ms")
    values["jitter_ns"] = units.time_ns("--jitter", options.jitter or "0ms")
    if values["jitter_ns"] > values["delay_ns"]:
        raise VclusterError(f"--jitter {options.jitter}: no frame can arrive before it was sent; give --delay as well")
    values["only"] = options.only
    values["whole"] = all(getattr(options, word) is None for word in _WHAT if word not in _SHAPE)
    return values


def run(name, options):
    """Does what the options say."""
    given = [f"--{word.replace('_', '-')}" for word in _WHAT if getattr(options, word) is not None]
    if (options.clear or options.list) and given:
        raise VclusterError(f"{given[0]} cannot be combined with --clear or --list")
    if not (options.clear or options.list or given):
        raise VclusterError('no fault given (see "vcluster faults --help")')
    if options.buffer and not options.rate:
        raise VclusterError(f"--buffer {options.buffer}: a queue fills only where there is a --rate")
    if not (options.clear or options.list):
        state.running(name)
        native_build.ensure_compiler()  # before taking the lock: it may take minutes
    with state.lock():
        record = state.running(name)
        places = _places(record, options)
        if options.list:
            _show(faults.describe(record), set(places), options)
        elif options.clear:
            faults.clear(record, places)
        else:
            faults.apply(record, places, _settings(options),
                         units.rate("--rate", options.rate) if options.rate else None,
                         units.size("--buffer", options.buffer) if options.buffer else None)
    return 0


def _time_text(nanoseconds):
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g}{unit}"
    return f"{nanoseconds}ns"


def _settings_text(settings):
    words = [f"{name} {settings[name] * 100:g}%" for name in ("loss", "duplicate", "corrupt", "reorder") if settings[name]]
    if settings["loss"] and settings["burst"] > 1:
        words.append(f"burst {settings['burst']}")
    if settings["reorder"]:
        words.append(f"reorder-by {_time_text(settings['reorder_ns'])}")
    words += [f"{name} {_time_text(settings[name + '_ns'])}" for name in ("delay", "jitter") if settings[name + "_ns"]]
    words += [f"{name} {settings[name]}" for name in ("rate", "buffer") if settings[name]]
    if settings["only"] != "all":
        words.append(f"only {settings['only']}")
    return ", ".join(words) or "nothing"


def _show(described, places, options):
    if options.nodes or options.rails or options.direction:
        described = [entry for entry in described if faults.place_of(
            entry["node"].removeprefix("node"), entry["rail"], entry["direction"]) in places]
    if options.json:
        print(json.dumps(described, indent=1))
        return
    if not described:
        print("no faults")
    for entry in described:
        counts = entry["counts"]
        gap = counts.pop("longest_gap_ns")
        happened = [f"{counts[name]} {name.replace('_', ' ')}" for name in counts if counts[name] or name == "seen"]
        if gap:
            happened.append(f"longest gap {_time_text(gap)}")
        print(f"{entry['direction']:>4} {entry['node']} rail {entry['rail']}: {_settings_text(entry['settings'])}; "
              f"{', '.join(happened)}")
