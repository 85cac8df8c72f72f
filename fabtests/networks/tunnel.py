"""One end of a tunnel that carries packets of IP in UDP, as WireGuard does, but seals nothing.

    tunnel.py INTERFACE OWN-ADDRESS OTHER-ADDRESS

Prints "ready" when the interface is there, and ends when it is killed.
"""
import fcntl
import os
import select
import socket
import struct
import sys

PORT = 51820
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 1, 0x1000


def main(interface, own, other):
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", interface.encode(), _IFF_TUN | _IFF_NO_PI))
    outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    outside.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    outside.bind((own, PORT))
    outside.setblocking(False)
    print("ready", flush=True)
    while True:
        select.select([tun, outside], [], [])
        try:
            while True:
                outside.sendto(os.read(tun, 65536), (other, PORT))
        except (BlockingIOError, OSError):
            pass
        try:
            while True:
                os.write(tun, outside.recv(65536))
        except (BlockingIOError, OSError):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
