/* A queue of tasks under a lock: it counts the ways to place N queens on a board. A task is a board with some rows
 * filled; the process that takes it fills one row more and gives the boards back as tasks, or, from a certain depth
 * on, counts alone. Tasks, their number and the result lie in shared memory that only the holder of the lock touches;
 * so this shows scope consistency: no barrier comes between the process that gives a task and the one that takes it.
 *
 * Options after HOST:PORT: N NANOSECONDS-A-POINT (for each board looked at; shaped computing, see dsm.h). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "dsm.h"

enum { kLock = 0, kDepth = 2, kTasksMax = 1024, kRanksMax = 256 };

struct board {
  uint32_t columns, left, right, rows; /* columns and diagonals taken, in rows of which `rows` are filled */
};

struct queue {
  struct board tasks[kTasksMax];
  uint64_t waiting; /* tasks */
  uint64_t open;    /* tasks waiting or being worked on */
  uint64_t found, done;
  /* Tasks done by each process. Only that process writes here, without the lock, to a page that others write to at
   * the same time; it is read after a barrier. */
  uint64_t done_by[kRanksMax];
};

static struct board with_queen(struct board b, uint32_t place) {
  return (struct board){b.columns | place, (b.left | place) << 1, (b.right | place) >> 1, b.rows + 1};
}

static uint32_t free_places(struct board b, int n) {
  return ~(b.columns | b.left | b.right) & ((1u << n) - 1);
}

static uint64_t count(struct board b, int n, uint64_t* looked_at) {
  ++*looked_at;
  if ((int)b.rows == n) return 1;
  uint64_t found = 0;
  for (uint32_t left = free_places(b, n); left; left &= left - 1)
    found += count(with_queen(b, left & -left), n, looked_at);
  return found;
}

/* Works on one task without the lock; what comes of it goes into `next` and `found`. */
static size_t work(struct board b, int n, struct board* next, uint64_t* found, double nanoseconds) {
  size_t tasks = 0;
  uint64_t looked_at = 0;
  if (b.rows < kDepth) {
    for (uint32_t left = free_places(b, n); left; left &= left - 1)
      next[tasks++] = with_queen(b, left & -left);
  } else {
    *found += count(b, n, &looked_at);
  }
  dsm_shaped_compute(nanoseconds * (double)looked_at);
  return tasks;
}

int main(int argc, char** argv) {
  static const uint64_t kKnown[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712};
  const int n = argc > 4 ? atoi(argv[4]) : 9;
  const double nanoseconds = argc > 5 ? atof(argv[5]) : 0;
  if (n < 4 || n > 13) {
    fprintf(stderr, "N: 4 to 13 queens\n");
    return 2;
  }
  dsm_open(argc > 4 ? 4 : argc, argv,
           "Queens on a board, counted by a queue of tasks in distributed shared memory.",
           sizeof(struct queue));
  struct queue* const q = dsm_alloc(sizeof *q, sizeof *q, 1);
  if (dsm_rank() == 0) q->waiting = q->open = 1; /* the empty board, which zeroed memory is */
  dsm_barrier();

  const double started = dsm_seconds();
  for (int finished = 0; !finished;) {
    dsm_lock(kLock);
    finished = q->open == 0;
    const int got = q->waiting > 0;
    const struct board task = got ? q->tasks[--q->waiting] : (struct board){0};
    dsm_unlock(kLock);
    if (!got) {
      dsm_shaped_compute(20000); /* others may give some */
      continue;
    }
    struct board next[32];
    uint64_t found = 0;
    const size_t tasks = work(task, n, next, &found, nanoseconds);
    dsm_lock(kLock);
    for (size_t i = 0; i < tasks; ++i) q->tasks[q->waiting++] = next[i];
    q->open += tasks - 1;
    q->found += found;
    ++q->done;
    dsm_unlock(kLock);
    ++q->done_by[dsm_rank()];
  }
  dsm_barrier();
  const double seconds = dsm_seconds() - started;
  uint64_t done = 0;
  for (int rank = 0; rank < dsm_size(); ++rank) done += q->done_by[rank];
  const int wrong = (q->found != kKnown[n]) + (done != q->done);
  dsm_report("tasks", seconds, wrong);
  dsm_close();
  return wrong > 0;
}
