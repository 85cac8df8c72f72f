/* A queue of tasks under a lock: it counts the ways to place N queens on a board. Tasks, their number and the result
 * lie in shared memory that only the holder of the lock touches; so this shows scope consistency: no barrier comes
 * between the process that gives a task and the one that takes it.
 *
 * Options after HOST:PORT: N NANOSECONDS-A-BOARD (looked at; see shaped.h). */
#include "tasks.h"

#include <stdlib.h>

#include "jiajia.h"
#include "shaped.h"

enum { kLock = 0, kRanksMax = 256 };

struct queue {
  struct board tasks[kTasksMax];
  uint64_t waiting; /* tasks */
  uint64_t open;    /* tasks waiting or being worked on */
  uint64_t found, done;
  /* Tasks done by each process. Only that process writes here, without the lock, to a page that others write to at
   * the same time; it is read after a barrier. */
  uint64_t done_by[kRanksMax];
};

int main(int argc, char** argv) {
  const int n = argc > 4 ? atoi(argv[4]) : 9;
  const double nanoseconds = argc > 5 ? atof(argv[5]) : 0;
  jia_init(argc, argv);
  if (n < kQueensMin || n > kQueensMax) jia_error("N: %d to %d queens", kQueensMin, kQueensMax);
  struct queue* const q = (struct queue*)jia_alloc2p(sizeof *q, 1 % jiahosts);
  if (jiapid == 0) q->waiting = q->open = 1; /* the empty board, which zeroed memory is */
  jia_barrier();

  const float started = jia_clock();
  for (int finished = 0; !finished;) {
    jia_lock(kLock);
    finished = q->open == 0;
    const int got = q->waiting > 0;
    const struct board task = got ? q->tasks[--q->waiting] : (struct board){0};
    jia_unlock(kLock);
    if (!got) {
      shaped_compute(20000); /* others may give some */
      continue;
    }
    const struct result r = work(task, n);
    shaped_compute(nanoseconds * (double)r.looked_at);
    jia_lock(kLock);
    for (size_t i = 0; i < r.tasks; ++i) q->tasks[q->waiting++] = r.next[i];
    q->open += r.tasks - 1;
    q->found += r.found;
    ++q->done;
    jia_unlock(kLock);
    ++q->done_by[jiapid];
  }
  jia_barrier();
  const float seconds = jia_clock() - started;
  uint64_t done = 0;
  for (int process = 0; process < jiahosts; ++process) done += q->done_by[process];
  const int wrong = (q->found != known_ways(n)) + (done != q->done);
  dsm_report("tasks", seconds, wrong);
  jia_exit();
  return wrong > 0;
}
