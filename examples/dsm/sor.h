/* Red-black successive over-relaxation on a grid: what sor.c and mpi/sor.c have in common. Red and black points lie in
 * arrays of their own, so that what one half step writes is contiguous. */
#ifndef EXAMPLES_SOR_H
#define EXAMPLES_SOR_H

#include <stdlib.h>

struct grid {
  int rows, columns; /* columns of one colour */
  double* points[2];
};

/* The colours of rows alternate: the neighbours of a point lie in its own column of the other colour, in the rows
 * above, beside and below, and in the next or previous column beside it. The rows at the borders stay. */
static inline void relax_row(struct grid g, int colour, int row) {
  if (row == 0 || row == g.rows - 1) return;
  double* const mine = g.points[colour] + (size_t)row * (size_t)g.columns;
  const double* const other = g.points[!colour] + (size_t)row * (size_t)g.columns;
  const int step = (row + colour) % 2 ? 1 : -1;
  for (int i = 1; i < g.columns - 1; ++i)
    mine[i] = 0.25 * (other[i - g.columns] + other[i + g.columns] + other[i] + other[i + step]);
}

static inline void set_borders(struct grid g, int begin, int end) {
  for (int row = begin; row < end; ++row) {
    for (int i = 0; i < g.columns; ++i) {
      const int border = row == 0 || row == g.rows - 1 || i == 0 || i == g.columns - 1;
      for (int c = 0; c < 2; ++c) g.points[c][row * g.columns + i] = border ? 1.0 + row % 7 : 0.0;
    }
  }
}

/* How many points of one's own rows are not, to the bit, what one process alone computes. */
static inline int wrong_points(struct grid g, int begin, int end, int steps) {
  struct grid alone = g;
  const size_t points = (size_t)g.rows * (size_t)g.columns;
  int wrong = 0;
  for (int c = 0; c < 2; ++c) alone.points[c] = malloc(points * sizeof(double));
  set_borders(alone, 0, g.rows);
  for (int half = 0; half < 2 * steps; ++half) {
    for (int row = 0; row < g.rows; ++row) relax_row(alone, half % 2, row);
  }
  for (int c = 0; c < 2; ++c) {
    for (size_t i = (size_t)begin * (size_t)g.columns; i < (size_t)end * (size_t)g.columns; ++i)
      wrong += g.points[c][i] != alone.points[c][i];
    free(alone.points[c]);
  }
  return wrong;
}

#endif
