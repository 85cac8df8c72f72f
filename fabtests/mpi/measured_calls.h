// Collective calls whose time is measured. Each call checks its result, and returns 1 if it is right.
// `round` makes the rounds differ. `bytes` is for the calls that a program adds.
#ifndef MEASURED_CALLS_H
#define MEASURED_CALLS_H

#include <mpi.h>

static int rank, size;  // in MPI_COMM_WORLD

static inline int barrier(int bytes, long round) {
  (void)bytes, (void)round;
  return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
}

static inline int allreduce(int bytes, long round) {
  long mine = round + rank, all = -1;
  (void)bytes;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all == size * round + (long)size * (size - 1) / 2;
}

/// Orders times for qsort().
static inline int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

#endif
