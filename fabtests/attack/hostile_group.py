"""A hostile host that writes into a multicast group: it forges frames in the names of members, and replays their own
frames.

    hostile_group.py --address 10.0.0.3 --group 239.192.7.7:7007 [--rate 20000] [--blind]

Reads the members, `IP PORT` a line, until an empty line, floods the group until its input ends, and prints what it has done as JSON.
It is on the network of the group, so it hears all frames there, unless it is blind.
"""
import argparse
import json
import os
import random
import select
import socket
import struct
import sys
import time

import forged_frames as forged
from hostile_host import packet

_GROUP, _ANNOUNCE = 12, 13
_SEALED = 64
_BATCH = 64
_HEARD = 256  # frames kept for replay


def _forged(stream=None, sequence=None, key=None):
    """A frame of a random stream or of one that it heard, with the body of a message."""
    if random.random() < 0.1:
        return forged.frame(_ANNOUNCE, sequence=forged.word(), transmission=forged.word())
    flags = forged.SEQUENCED | random.choice((0, forged.ACK_NOW))
    body = forged.segment(forged.EAGER, random.randbytes(random.randrange(1, 64)))
    if random.random() < 0.4:  # not a valid seal
        flags |= _SEALED
        body = random.randbytes(20) + body + random.randbytes(24)
    number = forged.word() if sequence is None else sequence + random.randrange(1, 2000) & 0xFFFFFFFF
    return forged.frame(_GROUP, flags, session=stream or forged.word(), sequence=number, transmission=key or forged.word(),
                        ack=number + 1 & 0xFFFFFFFF, body=body)


def _listen(group, address):
    heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    heard.bind(group)
    heard.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group[0]) + socket.inet_aton(address))
    heard.setblocking(False)
    return heard


def _altered(frame):
    at = random.randrange(len(frame))
    return frame[:at] + bytes([frame[at] ^ 1 << random.randrange(8)]) + frame[at + 1:]


def attack(chosen, group, members):
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(chosen.address))
    raw.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    heard = _listen(group, chosen.address)
    kept = []
    counts = {"forged": 0, "replayed": 0, "altered": 0, "heard": 0, "seconds": 0.0}
    begun = time.monotonic()
    sent = 0
    while not select.select([0], [], [], 0)[0]:
        for _ in range(_BATCH):
            source, data = random.choice(kept) if kept else (random.choice(members), b"")
            kind = random.choice(("forged", "replayed", "altered")) if data else "forged"
            if kind == "forged":
                known = struct.unpack_from("<III", data, 12) if len(data) >= 32 and random.random() < 0.5 else (None, None, None)
                data, source = _forged(*known), random.choice(members)
            elif kind == "altered":
                data = _altered(data)
            raw.sendto(packet(source, group, data), (group[0], 0))
            counts[kind] += 1
            sent += 1
        while not chosen.blind and select.select([heard], [], [], 0)[0]:
            data, source = heard.recvfrom(65536)
            if source not in members or len(data) > 1400:
                continue
            counts["heard"] += 1
            kept.insert(random.randrange(len(kept) + 1), (source, data))
            del kept[_HEARD:]
            if counts["heard"] % _BATCH == 0:
                break
        ahead = sent / chosen.rate - (time.monotonic() - begun)
        if ahead > 0:
            time.sleep(min(ahead, 0.05))
    counts["seconds"] = time.monotonic() - begun
    return counts


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--address", required=True, help="of this host")
    options.add_argument("--group", required=True, help="address:port")
    options.add_argument("--rate", type=int, default=20000, help="frames a second at most (default: %(default)s)")
    options.add_argument("--blind", action="store_true", help="it knows the members and the protocol, and no stream")
    chosen = options.parse_args()
    ip, port = chosen.group.split(":")
    members = []
    pending = b""
    while b"\n\n" not in pending:
        more = os.read(0, 4096)
        if not more:
            break
        pending += more
    for line in pending.decode().split("\n"):
        if line:
            members.append((line.split()[0], int(line.split()[1])))
    print(json.dumps(attack(chosen, (ip, int(port)), members)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
