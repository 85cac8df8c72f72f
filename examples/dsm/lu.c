/* LU: in each step one process finishes its next block of rows, all meet, and each takes multiples of the finished rows
 * off its own rows below them. It reads them by pages, each page once.
 *
 * Options after HOST:PORT: N (a multiple of 8) NANOSECONDS-AN-ELEMENT (changed once; see shaped.h). */
#include "lu.h"

#include "jiajia.h"
#include "shaped.h"

int main(int argc, char** argv) {
  const size_t n = argc > 4 ? (size_t)atol(argv[4]) : 128;
  const double nanoseconds = argc > 5 ? atof(argv[5]) : 0;
  jia_init(argc, argv);
  if (n == 0 || n % kBlock != 0) jia_error("N is no multiple of %d", kBlock);
  /* A block begins a page of its own, so that its home is its owner. */
  const size_t block_bytes = (kBlock * n * sizeof(double) + 4095) / 4096 * 4096, blocks = n / kBlock;
  char* const matrix = (char*)jia_alloc2((int)(blocks * block_bytes), (int)block_bytes);
#define BLOCK(b) ((double*)(matrix + (b)*block_bytes))
  const size_t me = (size_t)jiapid, processes = (size_t)jiahosts;
  for (size_t b = me; b < blocks; b += processes) {
    for (size_t i = 0; i < kBlock; ++i) {
      for (size_t j = 0; j < n; ++j) BLOCK(b)[i * n + j] = first_element(b * kBlock + i, j, n);
    }
  }
  jia_barrier();

  const float started = jia_clock();
  for (size_t step = 0; step < blocks; ++step) {
    const size_t k = step * kBlock;
    if (step % processes == me)
      shaped_compute(nanoseconds * (double)finish_block(BLOCK(step), k, k + kBlock, n));
    jia_barrier();
    size_t changed = 0;
    for (size_t b = me; b < blocks; b += processes) {
      for (size_t i = 0; b > step && i < kBlock; ++i) {
        for (size_t p = 0; p < kBlock; ++p)
          changed += eliminate(BLOCK(b) + i * n, BLOCK(step) + p * n, k + p, n);
      }
    }
    shaped_compute(nanoseconds * (double)changed);
  }
  jia_barrier();
  const float seconds = jia_clock() - started;
  /* Everyone compares all rows: those of others as it sees them. */
  double* const alone = lu_alone(n);
  int wrong = alone == NULL ? 1 : wrong_product(alone, n);
  for (size_t b = 0; alone != NULL && b < blocks; ++b)
    wrong += wrong_elements(BLOCK(b), alone + b * kBlock * n, kBlock * n);
  free(alone);
  dsm_report("lu", seconds, wrong);
  jia_exit();
  return wrong > 0;
}
