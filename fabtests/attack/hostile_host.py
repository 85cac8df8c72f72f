"""A hostile host: floods endpoints with frames under the names of others, and reaches for their memory under its own.

    hostile_host.py --address 10.0.0.3 --interface eth0 [--rate 50000]

Reads the endpoints, `IP PORT` a line, from its input, attacks those it knows until the input ends, and prints what it has
done as JSON. It knows addresses, ports and the protocol; it sees no frame that is not for it.
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

_BATCH = 256
_FRAMES = 500  # rebuilt whenever it learns of another endpoint
_REACHES = 2  # for memory, beside each batch; its own flood drops most of them


def _checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(source, target, payload, ethertype=0x0800, macs=b""):
    """An IP packet with a UDP datagram, in an Ethernet frame if there are MACs."""
    udp = struct.pack("!HHHH", source[1], target[1], 8 + len(payload), 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0, socket.inet_aton(source[0]),
                     socket.inet_aton(target[0]))
    ip = ip[:10] + struct.pack("!H", _checksum(ip)) + ip[12:]
    return (macs + struct.pack("!H", ethertype) if macs else b"") + ip + udp + payload


def call(name, rails=()):
    flags = forged.OPENING | forged.SEQUENCED | forged.ORDERED | forged.ACK_NOW
    return forged.frame(flags=flags, sequence=random.randrange(8),
                        body=forged.opening(name, forged.word() | 1, forged.LATE_EPOCH + random.randrange(1 << 20), rails)
                        + forged.any_segment())


def in_session():
    """A frame of a session with guessed numbers."""
    flags = forged.SEQUENCED | random.choice((0, forged.ORDERED)) | random.choice((0, forged.ACKNOWLEDGES))
    return forged.frame(flags=flags, session=forged.word(), sequence=forged.word(), transmission=random.randrange(64),
                        ack=forged.word(), largest=random.randrange(64), body=forged.any_segment())


def ending():
    """A fin or a reset with guessed numbers."""
    if random.random() < 0.5:
        return forged.frame(forged.FIN, session=forged.word(), sequence=forged.word())
    block = struct.pack("<B3xIIIQ", random.choice((1, 2)), forged.word(), forged.word(), random.randrange(64), forged.LATE_EPOCH)
    return forged.frame(forged.RESET, body=block)


def control():
    kind = random.choice((forged.KEEP_ALIVE, forged.ALIVE, forged.PATH_CHALLENGE, forged.PATH_RESPONSE))
    number = forged.word()
    return forged.frame(kind, session=number, sequence=number, transmission=forged.word(), ack=forged.word())


def misshapen():
    good = in_session()
    return random.choice((
        good[:random.randrange(len(good))],
        forged.frame(flags=255, body=random.randbytes(40)),
        forged.frame(flags=forged.SEQUENCED, session=forged.word(), body=forged.any_segment(), length=65535),
        forged.frame(flags=forged.SEQUENCED, session=forged.word(), body=random.randbytes(random.randrange(1, 200))),
        forged.frame(flags=forged.OPENING | forged.SEQUENCED, body=random.randbytes(60)),
        forged.frame(forged.FLOW, session=forged.word(), sound=False),
        random.randbytes(random.randrange(1, 1400))))


class HostileHost:
    def __init__(self, address, interface):
        self.address = address
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.ether = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.ether.bind((interface, 0))
        self.mac = self.ether.getsockname()[4]
        self.honest = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
        for each in self.honest:
            each.bind((address, 0))
            each.setblocking(False)
        self.endpoints = []
        self.frames = []
        self.calls = {}  # its own sessions: socket, target, what it sends there
        self.counts = {"sent": 0, "answers": 0, "refused_writes": 0, "writes_done": 0, "endpoints": 0, "seconds": 0.0}

    def learn(self, line):
        ip, port = line.split()
        endpoint = (ip, int(port))
        if endpoint in self.endpoints:
            return
        self.endpoints.append(endpoint)
        self.counts["endpoints"] = len(self.endpoints)
        self.frames = [self.make() for _ in range(_FRAMES)]

    def make(self):
        """The packet and its target."""
        target = random.choice(self.endpoints)
        others = [each for each in self.endpoints if each[0] != target[0]] or [("10.255.255.1", 5000)]
        name = random.choice(others)
        unknown = (self.address, random.randrange(1024, 65535))
        kind = random.randrange(7)
        if kind == 0:
            source, payload = name, call(name)
        elif kind == 1:
            source, payload = unknown, call(unknown, [name])
        elif kind == 2:
            source, payload = unknown, call(unknown)
        else:
            source, payload = name, (in_session, ending, control, misshapen)[kind - 3]()
        return packet(source, target, payload), (target[0], 0)

    def flood(self):
        for data, target in random.choices(self.frames, k=_BATCH):
            try:
                self.raw.sendto(data, target)
            except OSError:  # the queue is full
                continue
            self.counts["sent"] += 1

    def reach_for_memory(self):
        """Accesses memory under its own name and by the rules; the target answers each access."""
        mine = random.choice(self.honest)
        session = forged.word() | 1
        segment = forged.segment(forged.WRITE, b"\xF0" * 8, 7, 65536, 8, random.randrange(1, 9))
        self.calls[session] = (mine, random.choice(self.endpoints), forged.LATE_EPOCH + time.monotonic_ns(), segment)
        self.send_write(session, 0, 0, 1)

    def send_write(self, session, to, echo, transmission):
        mine, target, epoch, segment = self.calls[session]
        body = forged.opening(mine.getsockname(), session, epoch, echo=echo) + segment
        flags = forged.OPENING | forged.SEQUENCED | forged.ORDERED | forged.ACK_NOW
        mine.sendto(forged.frame(flags=flags, session=to, sequence=session, transmission=transmission, body=body), target)

    def take_answers(self):
        for mine in select.select(self.honest, [], [], 0)[0]:
            answer = forged.read(mine.recv(65536))
            if answer is None or answer["kind"] != forged.FLOW or answer["session"] not in self.calls:
                continue
            if "opening_session" in answer and not answer["flags"] & forged.SEQUENCED:
                self.counts["answers"] += 1
                self.send_write(answer["session"], answer["opening_session"], answer["opening_token"], 2)
            for kind, name_of in ((forged.FAILED, "refused_writes"), (forged.DONE, "writes_done")):
                if answer["flags"] & forged.SEQUENCED and answer["body"][:1] == bytes([kind]):
                    self.counts[name_of] += 1

    def attack(self, rate):
        begun = time.monotonic()
        pending = b""
        while True:
            if select.select([0], [], [], 0 if self.endpoints else 0.05)[0]:
                more = os.read(0, 4096)
                if not more:
                    break
                *lines, pending = (pending + more).split(b"\n")
                for line in lines:
                    self.learn(line.decode())
            if not self.endpoints:
                continue
            self.flood()
            self.take_answers()
            for _ in range(_REACHES):
                self.reach_for_memory()
            ahead = self.counts["sent"] / rate - (time.monotonic() - begun)
            if ahead > 0:
                time.sleep(min(ahead, 0.05))
        self.counts["seconds"] = time.monotonic() - begun
        return self.counts


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--address", required=True, help="of this host")
    options.add_argument("--interface", required=True)
    options.add_argument("--rate", type=int, default=50000, help="frames a second at most (default: %(default)s)")
    chosen = options.parse_args()
    print(json.dumps(HostileHost(chosen.address, chosen.interface).attack(chosen.rate)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
