/* The product of two matrices: what matmul.c and mpi/matmul.c have in common. Elements are integers that wrap around,
 * so the result can be checked to the bit. */
#ifndef EXAMPLES_MATMUL_H
#define EXAMPLES_MATMUL_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t element(int matrix, size_t row, size_t column) {
  return (row * 2654435761u + column * 40503u + (size_t)matrix) * 0x9e3779b97f4a7c15u;
}

/* Rows from `begin` on; `rows` points to the first of them. */
static inline void fill_rows(int matrix, uint64_t* rows, size_t begin, size_t end, size_t n) {
  for (size_t row = begin; row < end; ++row) {
    for (size_t column = 0; column < n; ++column)
      rows[(row - begin) * n + column] = element(matrix, row, column);
  }
}

static inline void multiply_row(const uint64_t* a, const uint64_t* b, uint64_t* c, size_t n) {
  for (size_t k = 0; k < n; ++k) {
    for (size_t column = 0; column < n; ++column) c[column] += a[k] * b[k * n + column];
  }
}

/* Row `row` of A times B times x must be row `row` of C times x: much cheaper than the product itself. */
static inline int wrong_rows(const uint64_t* rows, size_t begin, size_t end, size_t n) {
  uint64_t* const bx = calloc(n, sizeof *bx);
  int wrong = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) bx[i] += element(1, i, j) * (j * j + 1);
  }
  for (size_t i = begin; i < end; ++i) {
    uint64_t should = 0, is = 0;
    for (size_t j = 0; j < n; ++j) {
      should += element(0, i, j) * bx[j];
      is += rows[(i - begin) * n + j] * (j * j + 1);
    }
    wrong += should != is;
  }
  free(bx);
  return wrong;
}

#endif
