// A rank ends in the middle of broadcasts that libcluster-coll has taken over: all others get an error. They meet once more by
// messages of MPI, so that all of them have written what they know of the lost one before they end.
//
//   mpi_collective_loss             the last rank is lost
//   mpi_collective_loss lengths     no rank is: the last one gives a length of its own
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 1 << 20, FEW_BYTES = 2000, BEFORE = 5, ROUNDS = 1000, TAG = 3 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int lengths = argc > 1 && strcmp(argv[1], "lengths") == 0;
  int rank, size, error = MPI_SUCCESS, round = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int last = rank == size - 1;
  char* const bytes = calloc(1, BYTES);
  if (bytes == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (; round < ROUNDS && error == MPI_SUCCESS; ++round) {
    if (round == BEFORE && last && !lengths) _exit(1);
    const int length = !lengths ? BYTES : last ? FEW_BYTES / 2 : FEW_BYTES;
    error = MPI_Bcast(bytes, length, MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  int met = error != MPI_SUCCESS;
  if (rank != 0) MPI_Ssend(&met, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
  for (int other = 1; rank == 0 && other < size - !lengths; ++other) {
    int its = 0;
    MPI_Recv(&its, 1, MPI_INT, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    met += its;
  }
  if (rank == 0) printf("%d of %d ranks got an error\n", met, size);
  fflush(stdout);
  _exit(1);  // MPI_Finalize would wait for the lost one
}
