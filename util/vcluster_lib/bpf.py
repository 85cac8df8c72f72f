"""The few calls of bpf(2) that fault injection needs: they find the maps of a program, and read and write their one
entry."""
import ctypes
import os
import platform
import struct

from .errors import VclusterError

_SYSTEM_CALL = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
_LOOK_UP, _UPDATE, _PROGRAM_BY_ID, _MAP_BY_ID, _INFORM = 1, 2, 13, 14, 15
_INFO_BYTES = 256
_MAPS_MAX = 16
_libc = ctypes.CDLL(None, use_errno=True)


def _call(command, attributes):
    if _SYSTEM_CALL is None:
        raise VclusterError(f"vcluster faults does not work on {platform.machine()} processors")
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 32))
    result = _libc.syscall(_SYSTEM_CALL, command, buffer, len(buffer))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "bpf")
    return result


def _info(descriptor, text=b""):
    buffer = ctypes.create_string_buffer(text, _INFO_BYTES)
    _call(_INFORM, struct.pack("=IIQ", descriptor, _INFO_BYTES, ctypes.addressof(buffer)))
    return buffer.raw


def maps_of(program):
    """Names and ids of the maps of the program with this id."""
    descriptor = _call(_PROGRAM_BY_ID, struct.pack("=I", program))
    try:
        ids = (ctypes.c_uint32 * _MAPS_MAX)()
        # struct bpf_prog_info: nr_map_ids stands at 52, the address of map_ids at 56.
        asked = bytearray(_INFO_BYTES)
        struct.pack_into("=IQ", asked, 52, _MAPS_MAX, ctypes.addressof(ids))
        count = struct.unpack_from("=I", _info(descriptor, bytes(asked)), 52)[0]
    finally:
        os.close(descriptor)
    found = {}
    for number in ids[:count]:
        descriptor = _call(_MAP_BY_ID, struct.pack("=I", number))
        try:  # struct bpf_map_info: the name stands at 24
            found[_info(descriptor)[24:40].rstrip(b"\0").decode()] = number
        finally:
            os.close(descriptor)
    return found


def _entry(command, number, value):
    descriptor = _call(_MAP_BY_ID, struct.pack("=I", number))
    try:
        key = ctypes.c_uint32(0)
        _call(command, struct.pack("=IIQQQ", descriptor, 0, ctypes.addressof(key), ctypes.addressof(value), 0))
    finally:
        os.close(descriptor)


def read(number, size):
    """The bytes of the only entry of the map with this id."""
    value = ctypes.create_string_buffer(size)
    _entry(_LOOK_UP, number, value)
    return value.raw


def write(number, content):
    """Replaces the only entry of the map with this id."""
    _entry(_UPDATE, number, ctypes.create_string_buffer(content, len(content)))
