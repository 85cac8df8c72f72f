#!/usr/bin/env python3
"""mpi4py over cluster: pi by throwing dice in all processes, and large messages without a copy.

    mpirun -n 4 -x FI_PROVIDER=cluster --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include cluster \\
           python3 pi.py

mpi4py (Debian: python3-mpi4py) calls the MPI library, which calls libfabric: nothing here names the provider.
"""
import array
import random
import sys

from mpi4py import MPI

DICE = 20000
BYTES = 1 << 20


def pi(comm):
    """Objects: anything that can be pickled."""
    dice = random.Random(comm.rank)
    hits = sum(dice.random() ** 2 + dice.random() ** 2 < 1 for _ in range(DICE))
    return 4 * comm.allreduce(hits) / (DICE * comm.size)


def ring(comm):
    """Buffers: upper-case methods take memory as it lies."""
    mine = array.array("B", [comm.rank % 256]) * BYTES
    received = array.array("B", bytes(BYTES))
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    comm.Sendrecv(mine, dest=right, recvbuf=received, source=left)
    return received == array.array("B", [left % 256]) * BYTES


def main():
    comm = MPI.COMM_WORLD
    value, right = pi(comm), ring(comm)
    wrong = comm.allreduce(0 if right and abs(value - 3.1416) < 0.05 else 1)
    if comm.rank == 0:
        print(f"pi.py: {comm.size} processes, pi is about {value:.3f}, {wrong} were wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
