/* ../matmul.c with MPI: all processes give all others their rows of B. Options: as there, without the first three. */
#include "../matmul.h"

#include "../shaped.h"
#include "report.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t n = argc > 1 ? (size_t)atol(argv[1]) : 128;
  const double nanoseconds = argc > 2 ? atof(argv[2]) : 0;
  const size_t rows = (n + (size_t)size - 1) / (size_t)size;
  const size_t begin = rows * (size_t)rank < n ? rows * (size_t)rank : n;
  const size_t end = begin + rows < n ? begin + rows : n;
  uint64_t *const a = calloc(rows * n, sizeof *a), *const mine = calloc(rows * n, sizeof *mine),
                  *const b = calloc((size_t)size * rows * n, sizeof *b),
                  *const c = calloc(rows * n, sizeof *c);
  if (!a || !mine || !b || !c) MPI_Abort(MPI_COMM_WORLD, 1);
  fill_rows(0, a, begin, end, n);
  fill_rows(1, mine, begin, end, n);
  MPI_Barrier(MPI_COMM_WORLD);

  const double started = MPI_Wtime();
  MPI_Allgather(mine, (int)(rows * n), MPI_UINT64_T, b, (int)(rows * n), MPI_UINT64_T, MPI_COMM_WORLD);
  for (size_t row = 0; row < end - begin; ++row) {
    multiply_row(a + row * n, b, c + row * n, n);
    shaped_compute(nanoseconds * (double)n);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - started;
  const int wrong = wrong_rows(c, begin, end, n);
  report("matmul", size, seconds, wrong);
  MPI_Finalize();
  return wrong > 0;
}
