/* The line that all programs of this folder print. For all ranks to call. */
#ifndef EXAMPLES_MPI_REPORT_H
#define EXAMPLES_MPI_REPORT_H

#include <mpi.h>
#include <stdio.h>

static inline void report(const char* what, int processes, double seconds, int wrong) {
  int rank, all = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (wrong > 0) fprintf(stderr, "%s, process %d: %d values are wrong\n", what, rank, wrong);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%s: %d processes, %.3f s by MPI\n", what, processes, seconds);
}

#endif
