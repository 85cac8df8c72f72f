// gauss_mpi ORDER...: solves the known system of each order by elimination with two roundings, over MPI.
// Prints a line of JSON for each order, then PASS if all are right.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "gauss_rounded.h"

static void broadcast(void* context, double* message, int count, int root) {
  (void)context;
  MPI_Bcast(message, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank, size, good = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int at = 1; at < argc; ++at) {
    const int order = atoi(argv[at]);
    double* const message = malloc(sizeof(double) * (size_t)gauss_message_numbers(order));
    if (order < 1 || !message) MPI_Abort(MPI_COMM_WORLD, 2);
    const struct gauss_problem problem = {order, rank, size, gauss_known_element, broadcast, NULL, message};
    const struct gauss_result result = gauss_rounded(&problem);
    if (rank == 0) good &= gauss_tell(&result);
    free(message);
  }
  if (rank == 0) puts(good ? "PASS gauss_mpi" : "FAIL: gauss_mpi: a solution is wrong");
  MPI_Finalize();
  return !good;
}
