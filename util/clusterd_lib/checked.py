"""Checks input from outside: cards and reports of other agents, and reports of processes on this node.

Each function returns the value or raises AgentError. It checks the names, types and bounds of every field that this
program reads or a page shows. It ignores unknown fields, so that a later version can add some.
"""
import ipaddress

from .errors import AgentError
from .measure.rails import RAILS_MAX

TEXT_MAX = 1000
ENTRIES_MAX = 1 << 20
COUNTERS_MAX = 256  # each becomes a family of metrics; the provider has some 60
LEVELS_MAX = 12
_NUMBER_MAX = 2**64
_MTU_MIN, _MTU_MAX = 68, 65536


def _need(condition, what):
    if not condition:
        raise AgentError(f"the message is malformed: {what}")


def _shallow(value, levels=LEVELS_MAX):
    """Refuses a value that is nested deeper than any answer: the JSON encoder could not write it."""
    _need(levels > 0, "too many levels")
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _shallow(entry, levels - 1)


def _text(value):
    _need(isinstance(value, str) and len(value) <= TEXT_MAX and value.isprintable(), "a text")


def _number(value):
    _need(isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _NUMBER_MAX, "a number")


def _whole(least, most):
    def check(value):
        _need(isinstance(value, int) and not isinstance(value, bool) and least <= value <= most, "a whole number")
    return check


def _flag(value):
    _need(isinstance(value, bool), "yes or no")


def _address(value):
    try:
        ipaddress.IPv4Address(value if isinstance(value, str) else "")
    except ValueError as error:
        raise AgentError("the message is malformed: an IPv4 address") from error


def _or_none(check):
    return lambda value: value is None or check(value)


def _all(check, most=ENTRIES_MAX):
    def look(value):
        _need(isinstance(value, list) and len(value) <= most, "a list")
        for entry in value:
            check(entry)
    return look


def _each(check, most=ENTRIES_MAX):
    """A table from names to values."""
    def look(value):
        _need(isinstance(value, dict) and len(value) <= most, "a table")
        for name, entry in value.items():
            _text(name)
            check(entry)
    return look


def _fields(needed, possible=None):
    def look(value):
        _need(isinstance(value, dict), "a table")
        for name, check in needed.items():
            _need(name in value, f"without {name}")
            check(value[name])
        for name, check in (possible or {}).items():
            if name in value:
                check(value[name])
    return look


def _pair(value):
    _need(isinstance(value, list) and len(value) == 2, "a pair")
    _all(_number)(value)


_RAIL = _fields({"device": _text, "address": _address, "network": _text, "mtu": _whole(_MTU_MIN, _MTU_MAX), "speed": _number,
                 "duplex": _text, "up": _flag})
_CARD = _fields({"name": _text, "port": _whole(1, 65535), "rails": _all(_RAIL, RAILS_MAX)})
_LINK = _fields({"peer": _text, "rail": _whole(0, RAILS_MAX - 1), "state": _text, "loss": _number, "rtt_us": _number,
                 "path_mtu": _number, "mtu": _number}, {"rtt_min_us": _number, "rate_bits_per_second": _number})
_LOAD = _fields({"cpu": _number, "memory": _number, "load1": _number, "rates": _each(_pair)})
_FINDING = _fields({"node": _text, "rail": _or_none(_whole(0, RAILS_MAX)), "kind": _text, "text": _text})
_PEER = _fields({"peer": _text, "path": _text}, {
    "node": _text, **dict.fromkeys(("queued_frames", "sent_frames", "lost_frames", "retransmitted_frames", "silent_ns"), _number),
    "rails": _all(_fields({}, {"in_flight_frames": _number, "rtt_ns": _number, "relay": _text}))})
_OPERATION = _fields({"operation": _text, "peer": _text, "bytes": _number}, {"age_ns": _number})
_ENDPOINT = _fields({"endpoint": _fields({"endpoint": _text}, {"unexpected_messages": _number})}, {
    "counters": _each(_number, COUNTERS_MAX), "rates": _each(_number), "peers": _all(_PEER), "operations": _all(_OPERATION),
    "stuck": _all(_text), "trouble": _text, "options": _all(_fields({}, {"from": _text}))})
_PROCESS = _fields({"pid": _whole(0, 2**32), "command": _text, "endpoints": _all(_ENDPOINT)}, {"job": _text})
_RELAY = _fields({"addresses": _all(_text), **dict.fromkeys(("members", "frames", "bytes", "refused", "dropped"), _number)})
_REPORT = _fields({"card": _CARD, "load": _LOAD, "links": _all(_LINK), "findings": _all(_FINDING),
                   "endpoints": _fields({"processes": _all(_PROCESS)}, {"trouble": _text})}, {"relay": _RELAY})


def card(value, name):
    """The card of the node of that name: its rails."""
    _shallow(value)
    _CARD(value)
    _need(value["name"] == name, f"it calls itself {value['name']}, not {name}")
    return value


def report(value, name):
    """The report of the node of that name (view.py)."""
    _shallow(value)
    _REPORT(value)
    card(value["card"], name)
    return value


def events(value):
    """The number of events that a user wants to see."""
    _whole(0, ENTRIES_MAX)(value)
    return value


def process(value):
    """The report of a process about its endpoints, from cluster-info."""
    _PROCESS(value)
    return value
