/* ../sor.c with MPI: neighbours send each other the rows that they changed. Options: as there, without the first three. */
#include "../sor.h"

#include "../shaped.h"
#include "report.h"

/* Every process has memory for the whole grid, of which it uses its rows and one more on each side. */
static void exchange(struct grid g, int colour, int begin, int end, int above, int below) {
  double* const points = g.points[colour];
  const int columns = g.columns;
  MPI_Sendrecv(points + begin * columns, columns, MPI_DOUBLE, above, 0, points + end * columns, columns,
               MPI_DOUBLE, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(points + (end - 1) * columns, columns, MPI_DOUBLE, below, 1, points + (begin - 1) * columns,
               columns, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct grid g = {.rows = argc > 1 ? atoi(argv[1]) : 130, .columns = argc > 2 ? atoi(argv[2]) : 500};
  const int steps = argc > 3 ? atoi(argv[3]) : 10;
  const double nanoseconds = argc > 4 ? atof(argv[4]) : 0;
  const int rows = (g.rows + size - 1) / size; /* of each process but perhaps the last */
  const int begin = rows * rank, end = begin + rows < g.rows ? begin + rows : g.rows;
  if (rows * (size - 1) >= g.rows) MPI_Abort(MPI_COMM_WORLD, 2); /* a process without rows */
  for (int c = 0; c < 2; ++c) g.points[c] = malloc((size_t)g.rows * (size_t)g.columns * sizeof(double));
  set_borders(g, 0, g.rows);
  const int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Barrier(MPI_COMM_WORLD);

  const double started = MPI_Wtime();
  for (int half = 0; half < 2 * steps; ++half) {
    for (int row = begin; row < end; ++row) relax_row(g, half % 2, row);
    shaped_compute(nanoseconds * (end - begin) * g.columns);
    exchange(g, half % 2, begin, end, above, below);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - started;
  const int wrong = wrong_points(g, begin, end, steps);
  report("sor", size, seconds, wrong);
  MPI_Finalize();
  return wrong > 0;
}
