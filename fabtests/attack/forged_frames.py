"""Forges frames of the provider's protocol (prov/cluster/docs/protocol.md)."""
import random
import socket
import struct

_HEADER = struct.Struct("<BBBBHHIIIIII")  # magic to largest_acked
_OPENING = struct.Struct("<HBBIQBBHI16sIHHQQ")
_RAIL = struct.Struct("<BBH16s")

FLOW, RESET, FIN, KEEP_ALIVE, ALIVE, DATAGRAM, PATH_CHALLENGE, PATH_RESPONSE = range(1, 9)
VERSION = 2  # of the protocol
OPENING, ACK_BLOCK, SEQUENCED, ORDERED, ACK_NOW, ACKNOWLEDGES = (1 << bit for bit in range(6))
EAGER, ANNOUNCE, PULL, DONE, CREDIT, WRITE, READ, FAILED, ATOMIC = 1, 4, 5, 7, 8, 10, 13, 14, 17
PART = 128
LATE_EPOCH = 1 << 60


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def word():
    return random.getrandbits(32)


def frame(kind=FLOW, flags=0, session=0, sequence=0, transmission=0, ack=0, largest=0, body=b"", length=None, sound=True):
    """A whole frame. `length` replaces the true length; the checksum is wrong unless `sound`."""
    size = _HEADER.size + len(body) if length is None else length
    head = [0xC5, VERSION, kind, flags, size & 0xFFFF, 0, 0, session, sequence, transmission, ack, largest]
    head[6] = crc32c(_HEADER.pack(*head) + body) ^ (0 if sound else 1)
    return _HEADER.pack(*head) + body


def opening(address, session, epoch=LATE_EPOCH, rails=(), echo=0):
    """`address` and the rails are (ip, port). `echo`: the token of the opening that this one answers."""
    ip, port = address
    block = _OPENING.pack(_OPENING.size + 20 * len(rails), VERSION, VERSION, session, epoch, 4, len(rails), port, 0, socket.inet_aton(ip) + bytes(12),
                          0, 1472, 512, word() << 32 | word(), echo)
    return block + b"".join(_RAIL.pack(4, 0, rail_port, socket.inet_aton(rail_ip) + bytes(12)) for rail_ip, rail_port in rails)


def segment(kind, payload=b"", number=0, offset=0, total=0, key=0):
    """A segment of a kind that the attacks use; see section 5 of the protocol."""
    head = struct.pack("<BBHI", kind, 0, 0 if kind != ATOMIC else 3 | 1 << 5, len(payload))
    if kind in (ANNOUNCE, CREDIT, PULL):
        fields = {ANNOUNCE: struct.pack("<IQ", number, total), CREDIT: struct.pack("<Q", total),
                  PULL: struct.pack("<IIQQ", number, number, offset, total)}[kind]
    elif kind in (WRITE, ATOMIC):
        fields = struct.pack("<IQQQ", number, offset, total, key)
    elif kind == READ:
        fields = struct.pack("<IQQQ", number, offset, total, key) + struct.pack("<Q", 0)
    elif kind == DONE:
        fields = struct.pack("<I", number)
    else:
        fields = b""
    return head + fields + payload


def any_segment():
    kind = random.choice((EAGER, EAGER, ANNOUNCE, PULL, DONE, CREDIT, WRITE, WRITE, READ, ATOMIC))
    payload = random.randbytes(random.randrange(1, 64)) if kind in (EAGER, WRITE, ATOMIC) else b""
    return segment(kind, payload, random.randrange(64), random.randrange(4096), len(payload) or 64, random.randrange(1, 9))


def read(data):
    """The header of a frame and the bytes behind it; None if this is not a frame."""
    if len(data) < _HEADER.size or data[0] != 0xC5:
        return None
    names = ("magic", "version", "kind", "flags", "length", "ack_delay", "checksum", "session", "sequence", "transmission",
             "ack", "largest")
    found = dict(zip(names, _HEADER.unpack_from(data)))
    found["body"] = data[_HEADER.size:found["length"]]
    if found["flags"] & OPENING:
        found["opening_session"] = struct.unpack_from("<I", found["body"], 4)[0]
        found["opening_token"] = struct.unpack_from("<Q", found["body"], 48)[0]
        found["body"] = found["body"][struct.unpack_from("<H", found["body"])[0]:]
    return found
