"""Makes the kernel of this network namespace forget what it knows of UDP flows. A router that translates addresses then gives the
next packet of each flow another port. The connections of TCP stay."""
import socket
import struct

NETLINK_NETFILTER, CTNETLINK, GET, DELETE = 12, 1, 1, 2
REQUEST, DUMP, ACK, ERROR, DONE = 1, 0x300, 4, 2, 3
TUPLE_ORIGINAL, TUPLE_PROTOCOL, PROTOCOL_NUMBER = 1, 2, 1


def attributes(data):
    """Yields kind, content and the bytes of each attribute."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            return
        yield kind & 0x3FFF, data[4:length], data[:length]
        data = data[(length + 3) & ~3:]


def request(netlink, kind, flags, family, body=b""):
    header = struct.pack("=BBH", family, 0, 0) + body
    netlink.send(struct.pack("=IHHII", 16 + len(header), CTNETLINK << 8 | kind, REQUEST | flags, 1, 0) + header)


def replies(netlink):
    """Yields the body of each message up to the end of the answer."""
    while True:
        data = netlink.recv(1 << 16)
        while len(data) >= 16:
            length, kind = struct.unpack_from("=IH", data)
            if kind in (ERROR, DONE):
                return
            yield data[16:length]
            data = data[(length + 3) & ~3:]


def is_udp(flow):
    for kind, content, _ in attributes(flow):
        if kind == TUPLE_PROTOCOL:
            return any(kind == PROTOCOL_NUMBER and content[0] == socket.IPPROTO_UDP for kind, content, _ in attributes(content))
    return False


def main():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as netlink:
        request(netlink, GET, DUMP, socket.AF_INET)
        flows = [whole for body in replies(netlink) for kind, content, whole in attributes(body[4:])
                 if kind == TUPLE_ORIGINAL and is_udp(content)]
        for flow in flows:
            request(netlink, DELETE, ACK, socket.AF_INET, flow)
            for _ in replies(netlink):
                pass
    print(f"{len(flows)} flows forgotten")


if __name__ == "__main__":
    main()
