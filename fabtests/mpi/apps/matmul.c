// matmul: C = A * B. The first rank has A and B, broadcasts B, scatters the rows of A and gathers those of C;
// the product is checked against sums that are known in advance. Prints the time in all and the time in
// communication.
//
// matmul [ORDER [TIMES [NANOSECONDS]]]: with NANOSECONDS, the ranks compute a first product, which is not
// timed. For the others they sleep so long for each element, and send the first one again. So a machine with
// fewer processors than ranks shows how the product would scale on nodes of its own.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../examples/dsm/shaped.h"

static int rank, size, order;

static double* matrix(int rows) {
  double* numbers = calloc((size_t)rows * (size_t)order, sizeof *numbers);
  if (!numbers) MPI_Abort(MPI_COMM_WORLD, 1);
  return numbers;
}

// A(i,k) = i + k, B(k,j) = k - j: then C(i,j) is a polynomial in i and j.
static double expected(int i, int j) {
  const double n = order, sum = n * (n - 1) / 2, squares = (n - 1) * n * (2 * n - 1) / 6;
  return i * (sum - n * j) + squares - j * sum;
}

static void multiply(const double* a, const double* b, double* c, int rows) {
  for (int i = 0; i < rows; ++i) {
    for (int k = 0; k < order; ++k) {
      const double factor = a[(size_t)i * (size_t)order + (size_t)k];
      for (int j = 0; j < order; ++j)
        c[(size_t)i * (size_t)order + (size_t)j] += factor * b[(size_t)k * (size_t)order + (size_t)j];
    }
  }
}

// Rows that do not divide evenly go to the first ranks.
static int rows_of(int r) { return order / size + (r < order % size); }

static void deal(int* counts, int* places) {
  for (int r = 0, at = 0; r < size; ++r) {
    counts[r] = rows_of(r) * order;
    places[r] = at;
    at += counts[r];
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  order = argc > 1 ? atoi(argv[1]) : 500;
  if (order < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  const int times = argc > 2 ? atoi(argv[2]) : 3;
  const double nanoseconds = argc > 3 ? atof(argv[3]) : 0;
  const int rows = rows_of(rank);
  int* counts = malloc(sizeof(int) * 2 * (size_t)size);
  if (!counts) MPI_Abort(MPI_COMM_WORLD, 1);
  deal(counts, counts + size);
  double *a = matrix(rank == 0 ? order : 1), *b = matrix(order), *c = matrix(rank == 0 ? order : 1);
  double *mine = matrix(rows), *product = matrix(rows);
  for (int i = 0; i < order * order && rank == 0; ++i) {
    a[i] = i / order + i % order;
    b[i] = i / order - i % order;
  }
  double seconds = 0, talking = 0;
  for (int turn = nanoseconds > 0 ? -1 : 0; turn < times; ++turn) {
    const int computes = turn < 0 || nanoseconds <= 0;
    for (int i = 0; i < rows * order && computes; ++i) product[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    MPI_Bcast(b, order * order, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Scatterv(a, counts, counts + size, MPI_DOUBLE, mine, rows * order, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const double distributed = MPI_Wtime();
    if (computes)
      multiply(mine, b, product, rows);
    else
      shaped_compute(nanoseconds * rows * order);
    const double computed = MPI_Wtime();
    MPI_Gatherv(product, rows * order, MPI_DOUBLE, c, counts, counts + size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    const double finished = MPI_Wtime();
    if (turn < 0) continue;
    seconds += finished - begun;
    talking += distributed - begun + finished - computed;
  }
  int wrong = 0;
  for (int i = 0; i < order * order && rank == 0; ++i) {
    const double wanted = expected(i / order, i % order);
    wrong += fabs(c[i] - wanted) > 1e-9 * (1 + fabs(wanted));
  }
  if (rank == 0) {
    printf("matmul order %d ranks %d seconds %.4f seconds_talking %.4f\n", order, size, seconds / times,
           talking / times);
    if (wrong) printf("FAIL: matmul: %d elements are wrong\n", wrong);
    if (!wrong) puts("PASS matmul");
  }
  MPI_Finalize();
  return wrong != 0;
}
