// gauss: solves a dense system by elimination with partial pivoting by broadcast, columns dealt out in turn. The owner of a
// column finds its pivot alone and broadcasts which row that is and the multipliers of the rows below in one message; each
// rank exchanges the two rows within its own columns. The right side is at every rank, so that each has the solution at the
// end: for an unknown the owner of its column broadcasts it with that column. Prints the time of a solution, that of a
// column of the elimination, which part of the time ranks were in broadcasts on average, and the error. gauss_rows.c does
// the same with rows dealt out: there the search for each pivot is a reduction over all ranks.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "known_system.h"

static int rank, size, order;
static double in_broadcasts;  // seconds

struct system {
  double** columns;  // of order numbers; column j lives at rank j % size; NULL elsewhere
  double* right;     // side, at every rank
  double* message;   // one number for the broadcast, and those of a column
};

static int owner(int column) { return column % size; }

static double* numbers(int count) {
  double* const made = malloc(sizeof(double) * (size_t)count);
  if (!made) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

static void set_up(struct system* s) {
  s->columns = calloc((size_t)order, sizeof *s->columns);
  if (!s->columns) MPI_Abort(MPI_COMM_WORLD, 1);
  s->right = numbers(order);
  s->message = numbers(order + 1);
  for (int row = 0; row < order; ++row) s->right[row] = right_side(row, order);
  for (int column = rank; column < order; column += size) {
    s->columns[column] = numbers(order);
    for (int row = 0; row < order; ++row) s->columns[column][row] = element(row, column);
  }
}

static void swap(double* column, int a, int b) {
  const double kept = column[a];
  column[a] = column[b];
  column[b] = kept;
}

// The pivot's row goes to the front of the message, the multipliers of the rows below behind it.
static void choose_pivot(double* column, int from, double* message) {
  int best = from;
  for (int row = from + 1; row < order; ++row) {
    if (fabs(column[row]) > fabs(column[best])) best = row;
  }
  swap(column, from, best);
  message[0] = best;
  for (int row = from + 1; row < order; ++row) message[row - from] = column[row] / column[from];
}

static void eliminate_in(double* column, int from, const double* message) {
  swap(column, from, (int)message[0]);
  const double factor = column[from];
  for (int row = from + 1; row < order; ++row) column[row] -= message[row - from] * factor;
}

static void broadcast(double* message, int count, int root) {
  const double begun = MPI_Wtime();
  MPI_Bcast(message, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
  in_broadcasts += MPI_Wtime() - begun;
}

static void eliminate(struct system* s) {
  for (int column = 0; column < order; ++column) {
    if (rank == owner(column)) choose_pivot(s->columns[column], column, s->message);
    broadcast(s->message, order - column, owner(column));
    eliminate_in(s->right, column, s->message);
    for (int own = rank; own < order; own += size) {
      if (own > column) eliminate_in(s->columns[own], column, s->message);
    }
  }
}

// From the last unknown to the first: each is broadcast, and behind it what stands above the diagonal in its column.
static double substitute(struct system* s) {
  double worst = 0;
  for (int column = order - 1; column >= 0; --column) {
    if (rank == owner(column)) {
      s->message[0] = s->right[column] / s->columns[column][column];
      for (int row = 0; row < column; ++row) s->message[row + 1] = s->columns[column][row];
    }
    broadcast(s->message, column + 1, owner(column));
    const double unknown = s->message[0];
    for (int row = 0; row < column; ++row) s->right[row] -= s->message[row + 1] * unknown;
    const double error = fabs(unknown - (column + 1)) / (column + 1);
    if (!(error <= worst)) worst = error;
  }
  return worst;
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
  const double begun = MPI_Wtime();
  eliminate(&s);
  const double eliminated = MPI_Wtime();
  double mine = substitute(&s), worst = 0;
  const double seconds = MPI_Wtime() - begun;
  MPI_Reduce(&mine, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  double all = 0;
  MPI_Reduce(&in_broadcasts, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  const int good = rank != 0 || worst < 1e-6;
  if (rank == 0) {
    printf("gauss order %d ranks %d seconds %.4f us_per_column %.2f broadcasts %.0f %% worst_error %.1e\n",
           order, size, seconds, (eliminated - begun) / order * 1e6, all / size / seconds * 100, worst);
    puts(good ? "PASS gauss" : "FAIL: gauss: the solution is wrong");
  }
  MPI_Finalize();
  return !good;
}
