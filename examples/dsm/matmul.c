/* The product of two matrices: each process computes rows of C from its rows of A and all of B, of which it fetches
 * every page once.
 *
 * Options after HOST:PORT: N NANOSECONDS-AN-ELEMENT (of C; see shaped.h). */
#include "matmul.h"

#include "jiajia.h"
#include "shaped.h"

int main(int argc, char** argv) {
  const size_t n = argc > 4 ? (size_t)atol(argv[4]) : 128;
  const double nanoseconds = argc > 5 ? atof(argv[5]) : 0;
  jia_init(argc, argv);
  const size_t rows = (n + (size_t)jiahosts - 1) / (size_t)jiahosts, bytes_of_row = n * sizeof(uint64_t);
  uint64_t* m[3]; /* A, B, C */
  for (int i = 0; i < 3; ++i)
    m[i] = (uint64_t*)jia_alloc2((int)(n * bytes_of_row), (int)(rows * bytes_of_row));
  const size_t begin = rows * (size_t)jiapid < n ? rows * (size_t)jiapid : n;
  const size_t end = begin + rows < n ? begin + rows : n;
  for (int i = 0; i < 2; ++i) fill_rows(i, m[i] + begin * n, begin, end, n);
  jia_barrier();

  const float started = jia_clock();
  for (size_t row = begin; row < end; ++row) {
    multiply_row(m[0] + row * n, m[1], m[2] + row * n, n);
    shaped_compute(nanoseconds * (double)n);
  }
  jia_barrier();
  const float seconds = jia_clock() - started;
  /* The process after the one that computed rows reads them back: pages that had their home elsewhere. */
  const size_t next = (size_t)(jiapid + 1) % (size_t)jiahosts * rows;
  const size_t others = next < n ? next : n, others_end = others + rows < n ? others + rows : n;
  const int wrong =
      wrong_rows(m[2] + begin * n, begin, end, n) + wrong_rows(m[2] + others * n, others, others_end, n);
  dsm_report("matmul", seconds, wrong);
  jia_exit();
  return wrong > 0;
}
