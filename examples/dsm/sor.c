/* Red-black successive over-relaxation on a grid: each process owns rows, and reads one row of each neighbour a
 * half step. Red and black points lie in arrays of their own, so that what one half step writes is contiguous.
 *
 * Options after HOST:PORT: ROWS COLUMNS STEPS NANOSECONDS-A-POINT (shaped computing, see dsm.h). */
#include <stdio.h>
#include <stdlib.h>

#include "dsm.h"

struct grid {
  int rows, columns; /* columns of one colour */
  double* points[2];
};

/* The colours of rows alternate: the neighbours of a point lie in its own column of the other colour, in the rows
 * above, beside and below, and in the next or previous column beside it. */
static void relax_row(struct grid g, int colour, int row) {
  double* const mine = g.points[colour] + (size_t)row * (size_t)g.columns;
  const double* const other = g.points[!colour] + (size_t)row * (size_t)g.columns;
  const int step = (row + colour) % 2 ? 1 : -1;
  for (int i = 1; i < g.columns - 1; ++i)
    mine[i] = 0.25 * (other[i - g.columns] + other[i + g.columns] + other[i] + other[i + step]);
}

static void set_borders(struct grid g, int begin, int end) {
  for (int row = begin; row < end; ++row) {
    for (int i = 0; i < g.columns; ++i) {
      const int border = row == 0 || row == g.rows - 1 || i == 0 || i == g.columns - 1;
      for (int c = 0; c < 2; ++c) g.points[c][row * g.columns + i] = border ? 1.0 + row % 7 : 0.0;
    }
  }
}

/* How many points of one's own rows are not, to the bit, what one process alone computes. */
static int wrong_points(struct grid g, int begin, int end, int steps) {
  struct grid alone = g;
  const size_t points = (size_t)g.rows * (size_t)g.columns;
  int wrong = 0;
  for (int c = 0; c < 2; ++c) alone.points[c] = malloc(points * sizeof(double));
  set_borders(alone, 0, g.rows);
  for (int half = 0; half < 2 * steps; ++half) {
    for (int row = 1; row < g.rows - 1; ++row) relax_row(alone, half % 2, row);
  }
  for (int c = 0; c < 2; ++c) {
    for (size_t i = (size_t)begin * (size_t)g.columns; i < (size_t)end * (size_t)g.columns; ++i)
      wrong += g.points[c][i] != alone.points[c][i];
    free(alone.points[c]);
  }
  return wrong;
}

int main(int argc, char** argv) {
  struct grid g = {.rows = argc > 4 ? atoi(argv[4]) : 130, .columns = argc > 5 ? atoi(argv[5]) : 500};
  const int steps = argc > 6 ? atoi(argv[6]) : 10;
  const double nanoseconds = argc > 7 ? atof(argv[7]) : 0;
  const size_t bytes = (size_t)g.rows * (size_t)g.columns * sizeof(double);
  dsm_open(argc > 4 ? 4 : argc, argv, "Red-black over-relaxation of a grid in distributed shared memory.",
           2 * bytes + 8192);
  const int rows = (g.rows + dsm_size() - 1) / dsm_size(); /* of each process but perhaps the last */
  for (int c = 0; c < 2; ++c)
    g.points[c] = dsm_alloc(bytes, (size_t)rows * (size_t)g.columns * sizeof(double), 0);
  const int begin = rows * dsm_rank() < g.rows ? rows * dsm_rank() : g.rows;
  const int end = begin + rows < g.rows ? begin + rows : g.rows;
  set_borders(g, begin, end);
  dsm_barrier();

  const double started = dsm_seconds();
  for (int half = 0; half < 2 * steps; ++half) {
    for (int row = begin; row < end; ++row) {
      if (row > 0 && row < g.rows - 1) relax_row(g, half % 2, row);
    }
    dsm_shaped_compute(nanoseconds * (end - begin) * g.columns);
    dsm_barrier();
  }
  const double seconds = dsm_seconds() - started;
  const int wrong = wrong_points(g, begin, end, steps);
  dsm_report("sor", seconds, wrong);
  dsm_close();
  return wrong > 0;
}
