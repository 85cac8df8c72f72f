/* Queens on a board, as tasks: what tasks.c and mpi/tasks.c have in common. A task is a board with some rows filled. Who
 * takes it fills one row more and gives the boards back as tasks, or, from a certain depth on, counts alone. */
#ifndef EXAMPLES_TASKS_H
#define EXAMPLES_TASKS_H

#include <stdint.h>

enum { kDepth = 2, kQueensMin = 4, kQueensMax = 13, kTasksMax = 1024 };

struct board {
  uint32_t columns, left, right, rows; /* columns and diagonals taken, in rows of which `rows` are filled */
};

static inline struct board with_queen(struct board b, uint32_t place) {
  return (struct board){b.columns | place, (b.left | place) << 1, (b.right | place) >> 1, b.rows + 1};
}

static inline uint32_t free_places(struct board b, int n) {
  return ~(b.columns | b.left | b.right) & ((1u << n) - 1);
}

static inline uint64_t count(struct board b, int n, uint64_t* looked_at) {
  ++*looked_at;
  if ((int)b.rows == n) return 1;
  uint64_t found = 0;
  for (uint32_t left = free_places(b, n); left; left &= left - 1)
    found += count(with_queen(b, left & -left), n, looked_at);
  return found;
}

/* What comes of a task: more tasks, or ways that were found. */
struct result {
  uint64_t found, looked_at, tasks;
  struct board next[kQueensMax];
};

static inline struct result work(struct board b, int n) {
  struct result r = {.found = 0};
  if (b.rows < kDepth) {
    for (uint32_t left = free_places(b, n); left; left &= left - 1)
      r.next[r.tasks++] = with_queen(b, left & -left);
  } else {
    r.found = count(b, n, &r.looked_at);
  }
  return r;
}

static inline uint64_t known_ways(int n) {
  static const uint64_t kKnown[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712};
  return kKnown[n];
}

#endif
