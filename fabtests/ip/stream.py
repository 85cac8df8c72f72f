"""A TCP stream whose bytes are compared, and datagrams that come back.

    stream.py receive PORT                     prints "listening", then "received BYTES SECONDS LONGEST-GAP", or why bytes are wrong
    stream.py send ADDRESS PORT MEGABYTES      prints "connected"; 0: until it is killed
    stream.py echo PORT [GROUP]                answers datagrams, those to a multicast group, too; prints "listening"
    stream.py ask ADDRESS PORT BYTES [SOURCE]  one datagram; prints the address of each node that answers with the same bytes

Byte N of the stream is known: a block is the same at both ends, and each begins with its number.
"""
import random
import socket
import struct
import sys
import time

MEGABYTE = 1 << 20
ANSWER_SECONDS = 1.0
PATIENCE_SECONDS = 60


def block(number):
    return struct.pack("!Q", number) + BODY


BODY = random.Random(4711).randbytes(MEGABYTE - 8)


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def receive(port):
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        print("listening", flush=True)
        connected, _ = server.accept()
    connected.settimeout(PATIENCE_SECONDS)
    buffer, filled, number, longest = memoryview(bytearray(MEGABYTE)), 0, 0, 0.0
    begun = last = time.monotonic()
    while got := connected.recv_into(buffer[filled:]):
        now = time.monotonic()
        longest, last = max(longest, now - last), now
        filled += got
        if filled == MEGABYTE:
            if buffer != block(number):
                sys.exit(f"megabyte {number} is wrong")
            filled, number = 0, number + 1
    print(f"received {number * MEGABYTE + filled} {last - begun:.6f} {longest:.6f}")


def send(address, port, megabytes):
    with socket.create_connection((address, port), timeout=PATIENCE_SECONDS) as connected:
        print("connected", flush=True)
        number = 0
        while number < megabytes or megabytes == 0:
            connected.sendall(block(number))
            number += 1


def echo(port, group=None):
    with socket.socket(family_of(group or "::"), socket.SOCK_DGRAM) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("", port))
        if group and opened.family == socket.AF_INET6:
            index = struct.pack("@I", socket.if_nametoindex("cluster0"))
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + index)
        elif group and group.startswith("2"):
            index = struct.pack("@4s4si", socket.inet_aton(group), bytes(4), socket.if_nametoindex("cluster0"))
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, index)
        print("listening", flush=True)
        while True:
            data, source = opened.recvfrom(1 << 16)
            opened.sendto(data, source)


def ask(address, port, length, source=None):
    data = random.Random(length).randbytes(length)
    with socket.socket(family_of(address), socket.SOCK_DGRAM) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        index = socket.if_nametoindex("cluster0")
        if opened.family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        else:
            opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, struct.pack("@4s4si", bytes(4), bytes(4), index))
        if source:
            opened.bind((source, 0))
        opened.sendto(data, (address, port))
        opened.settimeout(ANSWER_SECONDS)
        while True:
            try:
                answer, answering = opened.recvfrom(1 << 16)
            except TimeoutError:
                return
            print(answering[0] if answer == data else f"{answering[0]}: wrong bytes", flush=True)


def main(words):
    run = {"receive": receive, "send": send, "echo": echo, "ask": ask}[words[0]]
    run(*(int(word) if word.isdigit() else word for word in words[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
