"""Numbers as people write them on a command line."""
import re

from .errors import VclusterError

_TIME_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_BITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BYTES = {"": 1, "k": 1024, "m": 1024**2}


def _split(text, units):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(" + units + ")", text.lower())
    return (float(match.group(1)), match.group(2)) if match else (None, "")


def rate(option, text):
    """Bits per second of '1gbit', '100mbit', '2.5g'."""
    number, unit = _split(text.lower().removesuffix("bit"), "[kmgt]?")
    if number is None or not 10_000 <= number * _BITS[unit] <= 10**12:
        raise VclusterError(f"{option} {text}: give a rate such as 100mbit or 1gbit (10kbit to 1tbit)")
    return int(number * _BITS[unit])


def share(option, text):
    """The share that '1%' or '1' stands for: both are percent."""
    number, _ = _split(text, "%?")
    if number is None or number > 100:
        raise VclusterError(f"{option} {text}: give percent of all frames, such as 1% (0 to 100)")
    return number / 100


def time_ns(option, text):
    """Nanoseconds of '50us', '1.5ms'."""
    number, unit = _split(text, "ns|us|ms|s")
    if number is None or number * _TIME_NS[unit] > 10**10:
        raise VclusterError(f"{option} {text}: give a time such as 50us or 1ms (up to 10s)")
    return int(number * _TIME_NS[unit])


def size(option, text):
    """Bytes of '65536', '64k', '1m'."""
    number, unit = _split(text.lower().removesuffix("b"), "[km]?")
    if number is None or not 2048 <= number * _BYTES[unit] <= 2**30:
        raise VclusterError(f"{option} {text}: give bytes such as 64k (2k to 1024m)")
    return int(number * _BYTES[unit])
