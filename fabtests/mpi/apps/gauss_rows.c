// gauss_rows: solves a dense system by elimination with partial pivoting, rows dealt out in turn. Every column
// costs a search for the pivot over all ranks (8 + 8 bytes), an exchange of two rows and a broadcast of the
// pivot row: many short messages, one after the other. Prints the time of a solution, of one 8-byte exchange
// within it, and the residual. gauss.c does the same with columns dealt out and nothing but broadcasts.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "known_system.h"

static int rank, size, order;

struct system {
  double** rows;  // of order + 1 numbers; row i lives at rank i % size; NULL elsewhere
  double* pivot;  // the pivot row of the current column
};

static int owner(int row) { return row % size; }

static void set_up(struct system* s) {
  s->rows = calloc((size_t)order, sizeof *s->rows);
  s->pivot = malloc(sizeof(double) * (size_t)(order + 1));
  if (!s->rows || !s->pivot) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int row = rank; row < order; row += size) {
    s->rows[row] = malloc(sizeof(double) * (size_t)(order + 1));
    if (!s->rows[row]) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int column = 0; column < order; ++column) s->rows[row][column] = element(row, column);
    s->rows[row][order] = right_side(row, order);
  }
}

static int find_pivot(const struct system* s, int column) {
  struct {
    double value;
    int row;
  } mine = {-1, column}, best;
  for (int row = rank; row < order; row += size) {
    if (row < column || fabs(s->rows[row][column]) <= mine.value) continue;
    mine.value = fabs(s->rows[row][column]);
    mine.row = row;
  }
  MPI_Allreduce(&mine, &best, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  return best.row;
}

static void swap_rows(struct system* s, int a, int b) {
  if (a == b) return;
  if (owner(a) == owner(b)) {
    double* row = s->rows[a];
    s->rows[a] = s->rows[b];
    s->rows[b] = row;
  } else if (rank == owner(a) || rank == owner(b)) {
    const int mine = rank == owner(a) ? a : b, peer = rank == owner(a) ? owner(b) : owner(a);
    MPI_Sendrecv_replace(s->rows[mine], order + 1, MPI_DOUBLE, peer, 1, peer, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
  }
}

static void eliminate(struct system* s) {
  for (int column = 0; column < order; ++column) {
    swap_rows(s, column, find_pivot(s, column));
    const int from = owner(column), length = order + 1 - column;
    double* pivot = rank == from ? s->rows[column] : s->pivot;
    MPI_Bcast(pivot + column, length, MPI_DOUBLE, from, MPI_COMM_WORLD);
    for (int row = rank; row < order; row += size) {
      if (row <= column) continue;
      const double factor = s->rows[row][column] / pivot[column];
      for (int i = column; i <= order; ++i) s->rows[row][i] -= factor * pivot[i];
    }
  }
}

// From the last unknown to the first: each is broadcast, 8 bytes, as soon as it is known.
static double substitute(struct system* s, double* seconds) {
  double worst = 0;
  const double begun = MPI_Wtime();
  for (int column = order - 1; column >= 0; --column) {
    double unknown = 0;
    if (rank == owner(column)) unknown = s->rows[column][order] / s->rows[column][column];
    MPI_Bcast(&unknown, 1, MPI_DOUBLE, owner(column), MPI_COMM_WORLD);
    for (int row = rank; row < column; row += size) s->rows[row][order] -= s->rows[row][column] * unknown;
    const double error = fabs(unknown - (column + 1)) / (column + 1);
    if (error > worst) worst = error;
  }
  *seconds = MPI_Wtime() - begun;
  return worst;
}

// Two ranks hand 8 bytes to and fro, as the search for a pivot does.
static double exchange_us(void) {
  enum { kTimes = 2000 };
  double value = 1, got = 0;
  if (size < 2) return 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  for (int i = 0; i < kTimes && rank < 2; ++i) {
    MPI_Sendrecv(&value, 1, MPI_DOUBLE, 1 - rank, 2, &got, 1, MPI_DOUBLE, 1 - rank, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  return (MPI_Wtime() - begun) / kTimes * 1e6;
}

int main(int argc, char** argv) {
  struct system s;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  order = argc > 1 ? atoi(argv[1]) : 400;
  if (order < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  set_up(&s);
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = MPI_Wtime(), back = 0;
  eliminate(&s);
  const double worst = substitute(&s, &back);
  const double seconds = MPI_Wtime() - begun;
  const double exchange = exchange_us();
  if (rank == 0) {
    printf(
        "gauss_rows order %d ranks %d seconds %.4f us_per_column %.2f us_per_exchange %.2f worst_error "
        "%.1e\n",
        order, size, seconds, (seconds - back) / order * 1e6, exchange, worst);
    puts(worst < 1e-6 ? "PASS gauss_rows" : "FAIL: gauss_rows: the solution is wrong");
  }
  MPI_Finalize();
  return worst < 1e-6 ? 0 : 1;
}
