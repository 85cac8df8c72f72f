/* Red-black successive over-relaxation: each process owns rows, and reads one row of each neighbour a half step.
 *
 * Options after HOST:PORT: ROWS COLUMNS STEPS NANOSECONDS-A-POINT (see shaped.h). */
#include "sor.h"

#include "jiajia.h"
#include "shaped.h"

int main(int argc, char** argv) {
  struct grid g = {.rows = argc > 4 ? atoi(argv[4]) : 130, .columns = argc > 5 ? atoi(argv[5]) : 500};
  const int steps = argc > 6 ? atoi(argv[6]) : 10;
  const double nanoseconds = argc > 7 ? atof(argv[7]) : 0;
  jia_init(argc, argv);
  const int bytes_of_row = g.columns * (int)sizeof(double);
  const int rows = (g.rows + jiahosts - 1) / jiahosts; /* of each process but perhaps the last */
  for (int c = 0; c < 2; ++c) g.points[c] = (double*)jia_alloc2(g.rows * bytes_of_row, rows * bytes_of_row);
  const int begin = rows * jiapid < g.rows ? rows * jiapid : g.rows;
  const int end = begin + rows < g.rows ? begin + rows : g.rows;
  set_borders(g, begin, end);
  jia_barrier();

  const float started = jia_clock();
  for (int half = 0; half < 2 * steps; ++half) {
    for (int row = begin; row < end; ++row) relax_row(g, half % 2, row);
    shaped_compute(nanoseconds * (end - begin) * g.columns);
    jia_barrier();
  }
  const float seconds = jia_clock() - started;
  const int wrong = wrong_points(g, begin, end, steps);
  dsm_report("sor", seconds, wrong);
  jia_exit();
  return wrong > 0;
}
