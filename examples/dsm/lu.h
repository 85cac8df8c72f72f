/* A matrix becomes the product of a lower and an upper triangle, in place: what lu.c and mpi/lu.c have in common. The
 * diagonal is large, so no rows are exchanged. Blocks of rows belong to processes in turn. */
#ifndef EXAMPLES_LU_H
#define EXAMPLES_LU_H

#include <stdlib.h>

enum { kBlock = 8 /* rows */ };

static inline double first_element(size_t row, size_t column, size_t n) {
  return row == column ? 2.0 * (double)n : 1.0 + (double)((row * 7 + column * 13) % 31) / 31;
}

/* Takes a multiple of row `k`, which is finished, off another row. Returns how many elements it changed. */
static inline size_t eliminate(double* row, const double* pivot, size_t k, size_t n) {
  row[k] /= pivot[k];
  for (size_t j = k + 1; j < n; ++j) row[j] -= row[k] * pivot[j];
  return n - k;
}

/* Finishes rows `k` to `end` (without) of a block, of which `rows` is the first. */
static inline size_t finish_block(double* rows, size_t k, size_t end, size_t n) {
  size_t changed = 0;
  for (size_t i = k + 1; i < end; ++i) {
    for (size_t p = k; p < i; ++p) changed += eliminate(rows + (i - k) * n, rows + (p - k) * n, p, n);
  }
  return changed;
}

/* What one process alone makes of the matrix, row after row. */
static inline double* lu_alone(size_t n) {
  double* const a = malloc(n * n * sizeof *a);
  for (size_t i = 0; a != NULL && i < n; ++i) {
    for (size_t j = 0; j < n; ++j) a[i * n + j] = first_element(i, j, n);
    for (size_t k = 0; k < i; ++k) eliminate(a + i * n, a + k * n, k, n);
  }
  return a;
}

/* How many elements differ: every element sees the same operations in the same order, so none may. */
static inline int wrong_elements(const double* rows, const double* alone, size_t count) {
  int wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += rows[i] != alone[i];
  return wrong;
}

/* A times x must be L times U times x, up to rounding: how many rows of the result are not. */
static inline int wrong_product(const double* lu, size_t n) {
  double* const ux = calloc(n, sizeof *ux);
  int wrong = ux == NULL;
  for (size_t i = 0; ux != NULL && i < n; ++i) {
    double should = 0, is = 0;
    for (size_t j = i; j < n; ++j) ux[i] += lu[i * n + j] * (double)(j % 5 + 1);
    for (size_t j = 0; j < i; ++j) is += lu[i * n + j] * ux[j];
    for (size_t j = 0; j < n; ++j) should += first_element(i, j, n) * (double)(j % 5 + 1);
    const double difference = is + ux[i] - should;
    wrong += difference > 1e-9 * should || difference < -1e-9 * should;
  }
  free(ux);
  return wrong;
}

#endif
