#!/usr/bin/env python3
"""libfabric from Python, without MPI: one process writes into the memory of another.

    python3 fabric_build.py                             # once
    FI_PROVIDER=cluster python3 put.py 127.0.0.1:20000 &
    FI_PROVIDER=cluster python3 put.py 127.0.0.1:20000

The first of the two listens at HOST:PORT and is the target. It posts nothing and receives nothing: fi_writedata brings
the bytes and 8 more as remote completion data, which its completion queue shows when the bytes are there.
"""
import pickle
import socket
import sys
import time

from _fabric import ffi, lib

TEXT = "written by another process ".encode() * 1000
SECONDS_MAX = 30


def must(result, what):
    if result < 0:
        sys.exit(f"{what}: {ffi.string(lib.fi_strerror(-result)).decode()}")
    return result


def opened(call, *arguments):
    """What a call of libfabric opens comes back through a pointer."""
    place = ffi.new(ffi.typeof(call).args[len(arguments)])
    must(call(*arguments, place, ffi.NULL), str(call))
    return place[0]


class Endpoint:
    """An endpoint and a region of memory, and in `introduction` what a peer must know of both."""

    def __init__(self, size):
        hints, found = lib.fi_allocinfo(), ffi.new("struct fi_info **")
        hints.caps = lib.FI_MSG | lib.FI_RMA
        hints.ep_attr.type = lib.FI_EP_RDM
        hints.domain_attr.mr_mode = lib.FI_MR_LOCAL | lib.FI_MR_VIRT_ADDR | lib.FI_MR_ALLOCATED | lib.FI_MR_PROV_KEY
        hints.domain_attr.data_progress = lib.FI_PROGRESS_MANUAL
        hints.tx_attr.op_flags = lib.FI_DELIVERY_COMPLETE
        must(lib.fi_getinfo((1 << 16) | 17, ffi.NULL, ffi.NULL, 0, hints, found), "fi_getinfo (FI_PROVIDER names a provider)")
        lib.fi_freeinfo(hints)
        self.info = found[0]
        self.fabric = opened(lib.fi_fabric, self.info.fabric_attr)
        self.domain = opened(lib.fi_domain, self.fabric, self.info)
        self.cq = opened(lib.fi_cq_open, self.domain, ffi.new("struct fi_cq_attr *", {"format": lib.FI_CQ_FORMAT_DATA}))
        self.av = opened(lib.fi_av_open, self.domain, ffi.new("struct fi_av_attr *", {"type": lib.FI_AV_TABLE}))
        self.ep = opened(lib.fi_endpoint, self.domain, self.info)
        self.memory = ffi.new("char[]", size)
        access = lib.FI_READ | lib.FI_WRITE | lib.FI_REMOTE_READ | lib.FI_REMOTE_WRITE
        self.mr = opened(lib.fi_mr_reg, self.domain, self.memory, size, access, 0, 1, 0)
        must(lib.fi_ep_bind(self.ep, ffi.addressof(self.cq.fid), lib.FI_TRANSMIT | lib.FI_RECV), "fi_ep_bind")
        must(lib.fi_ep_bind(self.ep, ffi.addressof(self.av.fid), 0), "fi_ep_bind")
        must(lib.fi_enable(self.ep), "fi_enable")
        name, length = ffi.new("char[256]"), ffi.new("size_t *", 256)
        must(lib.fi_getname(ffi.addressof(self.ep.fid), name, length), "fi_getname")
        by_address = self.info.domain_attr.mr_mode & lib.FI_MR_VIRT_ADDR
        self.introduction = (bytes(ffi.buffer(name, length[0])), lib.fi_mr_key(self.mr),
                             int(ffi.cast("uintptr_t", self.memory)) if by_address else 0)

    def insert(self, name):
        place = ffi.new("uint64_t *")
        must(lib.fi_av_insert(self.av, name, 1, place, 0, ffi.NULL) - 1, "fi_av_insert")
        return place[0]

    def post(self, call, *arguments):
        """Posts an operation; a provider that cannot take it now (it may be connecting) can after some progress."""
        while (result := call(self.ep, *arguments, ffi.NULL)) == -lib.FI_EAGAIN:
            lib.fi_cq_read(self.cq, ffi.NULL, 0)
        must(result, "posting")

    def completion(self):
        """The next one. Reading is also what makes progress."""
        entry, limit = ffi.new("struct fi_cq_data_entry *"), time.monotonic() + SECONDS_MAX
        while time.monotonic() < limit:
            result = lib.fi_cq_read(self.cq, entry, 1)
            if result == -lib.FI_EAVAIL:
                error = ffi.new("struct fi_cq_err_entry *")
                lib.fi_cq_readerr(self.cq, error, 0)
                must(-error.err, "the operation")
            if result != -lib.FI_EAGAIN:
                must(result, "fi_cq_read")
                return entry
        sys.exit(f"nothing came for {SECONDS_MAX} s")

    def close(self):
        for opened_object in (self.mr, self.ep, self.av, self.cq, self.domain, self.fabric):
            must(lib.fi_close(ffi.addressof(opened_object.fid)), "fi_close")
        lib.fi_freeinfo(self.info)


def meet(where):
    """A TCP connection between the two, and whether this one came first."""
    host, port = where.rsplit(":", 1)
    try:
        with socket.create_server((host, int(port))) as listener:
            listener.settimeout(SECONDS_MAX)
            return listener.accept()[0], True
    except OSError:  # the other one is there, or this is another node
        return socket.create_connection((host, int(port)), timeout=SECONDS_MAX), False


def main(where):
    connection, first = meet(where)
    endpoint = Endpoint(len(TEXT))
    with connection, connection.makefile("rwb") as stream:
        pickle.dump(endpoint.introduction, stream)
        stream.flush()
        name, key, address = pickle.load(stream)
        peer = endpoint.insert(name)
        if first:
            entry = endpoint.completion()
            right = entry.flags & lib.FI_REMOTE_CQ_DATA and entry.data == len(TEXT) and bytes(ffi.buffer(endpoint.memory)) == TEXT
            print(f"put.py over {ffi.string(endpoint.info.fabric_attr.prov_name).decode()}: {entry.data} bytes came, "
                  + ("as they were sent" if right else "WRONG"), flush=True)
        else:
            ffi.memmove(endpoint.memory, TEXT, len(TEXT))
            endpoint.post(lib.fi_writedata, endpoint.memory, len(TEXT), lib.fi_mr_desc(endpoint.mr), len(TEXT), peer, address, key)
            endpoint.completion()
            right = True
        stream.write(b".")  # neither closes before the other is done
        stream.flush()
        stream.read(1)
    endpoint.close()
    return 0 if right else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
