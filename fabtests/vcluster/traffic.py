"""Numbered frames from one virtual node to another, to see what became of each.

    traffic.py receive raw|udp               prints "ready ADDRESS", then what came, as JSON
    traffic.py send raw|udp ADDRESS COUNT [SIZE [SEGMENTS]]

Raw frames have an EtherType for experiments of their own. ADDRESS is that of the receiver, as it said. With SEGMENTS
several datagrams leave as one super-datagram, which the kernel or the card cuts.
"""
import json
import socket
import struct
import sys
import zlib

_ETHERTYPE = 0x88B6  # the other one for experiments: 0x88B5 is the provider's
_INTERFACE = "eth0"
_BUFFER_BYTES = 256 << 20
_SO_RCVBUFFORCE = 33
_UDP_SEGMENT = 103
_LAST = 0xFFFFFFFF
_LAST_COPIES = 200  # some of them arrive
_SILENCE_SECONDS = 0.3  # after the last one: longer than anything is held
_PATIENCE_SECONDS = 60


_PATTERN = bytes(range(256)) * 8


def _body(number, size):
    begin = number & 255
    content = struct.pack(">I", number) + _PATTERN[begin:begin + size - 8]
    return content + struct.pack(">I", zlib.crc32(content))


def _open(way):
    if way == "udp":
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE))


def _receive(way):
    where = _open(way)
    where.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    where.settimeout(_PATIENCE_SECONDS)
    if way == "udp":
        where.bind(("0.0.0.0", 0))
        print("ready", f"{socket.gethostbyname(socket.gethostname())}:{where.getsockname()[1]}", flush=True)
    else:
        where.bind((_INTERFACE, _ETHERTYPE))
        print("ready", where.getsockname()[4].hex(), flush=True)
    numbers, damaged = [], 0
    try:
        while True:
            frame, sender = where.recvfrom(65536)
            if way == "raw" and sender[2] == socket.PACKET_OUTGOING:
                continue
            body = frame if way == "udp" else frame[14:]
            if zlib.crc32(body[:-4]) != struct.unpack(">I", body[-4:])[0]:
                damaged += 1
                continue
            number = struct.unpack(">I", body[:4])[0]
            if number == _LAST:
                where.settimeout(_SILENCE_SECONDS)
            else:
                numbers.append(number)
    except TimeoutError:
        pass
    highest, late = -1, 0
    for number in numbers:
        late += number < highest
        highest = max(highest, number)
    print(json.dumps({"arrived": len(numbers), "different": len(set(numbers)), "late": late, "damaged": damaged,
                      "missing": sorted(set(range(highest + 1)) - set(numbers))}))


def _send(way, address, count, size=200, segments=1):
    where = _open(way)
    where.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    if way == "udp":
        host, _, port = address.partition(":")
        where.connect((host, int(port)))
        head = b""
    else:
        where.bind((_INTERFACE, 0))
        head = bytes.fromhex(address) + where.getsockname()[4] + struct.pack(">H", _ETHERTYPE)
    if segments == 1:
        for number in range(count):
            where.send(head + _body(number, size))
    else:
        where.setsockopt(socket.SOL_UDP, _UDP_SEGMENT, size)
        for first in range(0, count, segments):
            where.send(b"".join(_body(number, size) for number in range(first, first + segments)))
    for _ in range(_LAST_COPIES):
        where.send(head + _body(_LAST, size))


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        _receive(sys.argv[2])
    else:
        _send(sys.argv[2], sys.argv[3], *map(int, sys.argv[4:]))
