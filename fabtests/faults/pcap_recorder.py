"""Records what passes an interface of a node into a pcap file, until standard input ends: pcap_recorder.py INTERFACE FILE"""
import select
import socket
import struct
import sys
import time

_ETH_P_ALL = 3
_NANOSECONDS_MAGIC, _ETHERNET, _PACKET_BYTES = 0xA1B23C4D, 1, 262144


def main(interface, path):
    where = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    where.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    where.bind((interface, _ETH_P_ALL))
    where.setblocking(False)
    with open(path, "wb") as file:
        file.write(struct.pack("=IHHIIII", _NANOSECONDS_MAGIC, 2, 4, 0, 0, _PACKET_BYTES, _ETHERNET))
        print("ready", flush=True)
        going = True
        while going:
            readable, _, _ = select.select([where, sys.stdin], [], [])
            going = sys.stdin not in readable
            try:
                while True:
                    packet = where.recv(_PACKET_BYTES)
                    now = time.time_ns()
                    file.write(struct.pack("=IIII", now // 10**9, now % 10**9, len(packet), len(packet)) + packet)
            except BlockingIOError:
                pass


if __name__ == "__main__":
    main(*sys.argv[1:])
