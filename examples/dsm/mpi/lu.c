/* ../lu.c with MPI: who finishes a block sends it to all. Options: as there, without the first three. */
#include "../lu.h"

#include <string.h>

#include "../shaped.h"
#include "report.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t n = argc > 1 ? (size_t)atol(argv[1]) : 128;
  const double nanoseconds = argc > 2 ? atof(argv[2]) : 0;
  if (n == 0 || n % kBlock != 0) MPI_Abort(MPI_COMM_WORLD, 2);
  /* Memory for the whole matrix, of which a process keeps its own blocks up to date. */
  const size_t blocks = n / kBlock, me = (size_t)rank, processes = (size_t)size;
  double *const a = calloc(n * n, sizeof *a), *const finished = calloc(kBlock * n, sizeof *finished);
  if (!a || !finished) MPI_Abort(MPI_COMM_WORLD, 1);
#define BLOCK(b) (a + (b)*kBlock * n)
  for (size_t b = me; b < blocks; b += processes) {
    for (size_t i = 0; i < kBlock; ++i) {
      for (size_t j = 0; j < n; ++j) BLOCK(b)[i * n + j] = first_element(b * kBlock + i, j, n);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);

  const double started = MPI_Wtime();
  for (size_t step = 0; step < blocks; ++step) {
    const size_t k = step * kBlock;
    if (step % processes == me) {
      shaped_compute(nanoseconds * (double)finish_block(BLOCK(step), k, k + kBlock, n));
      memcpy(finished, BLOCK(step), kBlock * n * sizeof *finished);
    }
    MPI_Bcast(finished, (int)(kBlock * n), MPI_DOUBLE, (int)(step % processes), MPI_COMM_WORLD);
    size_t changed = 0;
    for (size_t b = me; b < blocks; b += processes) {
      for (size_t i = 0; b > step && i < kBlock; ++i) {
        for (size_t p = 0; p < kBlock; ++p)
          changed += eliminate(BLOCK(b) + i * n, finished + p * n, k + p, n);
      }
    }
    shaped_compute(nanoseconds * (double)changed);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - started;
  double* const alone = lu_alone(n);
  int wrong = alone == NULL ? 1 : wrong_product(alone, n);
  for (size_t b = me; alone != NULL && b < blocks; b += processes)
    wrong += wrong_elements(BLOCK(b), alone + b * kBlock * n, kBlock * n);
  report("lu", size, seconds, wrong);
  MPI_Finalize();
  return wrong > 0;
}
