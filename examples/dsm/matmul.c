/* The product of two matrices: each process computes rows of C from its rows of A and all of B, of which it fetches
 * every page once. Elements are integers that wrap around, so the result can be checked to the bit.
 *
 * Options after HOST:PORT: N NANOSECONDS-A-POINT (shaped computing, see dsm.h). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "dsm.h"

static uint64_t element(int matrix, size_t row, size_t column) {
  return (row * 2654435761u + column * 40503u + (size_t)matrix) * 0x9e3779b97f4a7c15u;
}

/* Row `row` of A times B times x must be row `row` of C times x: much cheaper than the product itself. */
static int wrong_rows(size_t n, size_t begin, size_t end, const uint64_t* c) {
  uint64_t* const bx = calloc(n, sizeof *bx);
  int wrong = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) bx[i] += element(1, i, j) * (j * j + 1);
  }
  for (size_t i = begin; i < end; ++i) {
    uint64_t should = 0, is = 0;
    for (size_t j = 0; j < n; ++j) {
      should += element(0, i, j) * bx[j];
      is += c[i * n + j] * (j * j + 1);
    }
    wrong += should != is;
  }
  free(bx);
  return wrong;
}

int main(int argc, char** argv) {
  const size_t n = argc > 4 ? (size_t)atol(argv[4]) : 128;
  const double nanoseconds = argc > 5 ? atof(argv[5]) : 0;
  const size_t bytes = n * n * sizeof(uint64_t);
  dsm_open(argc > 4 ? 4 : argc, argv, "The product of two matrices in distributed shared memory.",
           3 * bytes + 3 * 4096);
  const size_t rows = (n + (size_t)dsm_size() - 1) / (size_t)dsm_size();
  uint64_t* m[3]; /* A, B, C */
  for (int i = 0; i < 3; ++i) m[i] = dsm_alloc(bytes, rows * n * sizeof(uint64_t), 0);
  const size_t begin = rows * (size_t)dsm_rank() < n ? rows * (size_t)dsm_rank() : n;
  const size_t end = begin + rows < n ? begin + rows : n;
  for (int i = 0; i < 2; ++i) {
    for (size_t row = begin; row < end; ++row) {
      for (size_t column = 0; column < n; ++column) m[i][row * n + column] = element(i, row, column);
    }
  }
  dsm_barrier();

  const double started = dsm_seconds();
  for (size_t row = begin; row < end; ++row) {
    for (size_t k = 0; k < n; ++k) {
      const uint64_t a = m[0][row * n + k];
      for (size_t column = 0; column < n; ++column) m[2][row * n + column] += a * m[1][k * n + column];
    }
    dsm_shaped_compute(nanoseconds * (double)n);
  }
  dsm_barrier();
  const double seconds = dsm_seconds() - started;
  /* C is read back by the process after the one that computed it: pages that had their home elsewhere. */
  const size_t other = (size_t)(dsm_rank() + 1) % (size_t)dsm_size() * rows;
  const int wrong = wrong_rows(n, begin, end, m[2]) +
                    wrong_rows(n, other < n ? other : n, other + rows < n ? other + rows : n, m[2]);
  dsm_report("matmul", seconds, wrong);
  dsm_close();
  return wrong > 0;
}
