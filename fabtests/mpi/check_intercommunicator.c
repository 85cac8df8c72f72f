// Two groups that face each other: messages, collective operations and their union.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kBytes = 30000, kMembers = 100 };

struct sides {
  MPI_Comm own, between;
  int low, rank, size, others;
};

static struct sides open_sides(void) {
  struct sides s = {.low = job.rank < (job.size + 1) / 2};
  MPI_Comm_split(job.comm, s.low, job.rank, &s.own);
  MPI_Intercomm_create(s.own, 0, job.comm, s.low ? (job.size + 1) / 2 : 0, 77, &s.between);
  MPI_Comm_rank(s.between, &s.rank);
  MPI_Comm_size(s.between, &s.size);
  MPI_Comm_remote_size(s.between, &s.others);
  return s;
}

static void close_sides(struct sides* s) {
  MPI_Comm_free(&s->between);
  MPI_Comm_free(&s->own);
}

// Each rank writes to every rank of the other side; ranks count within a group there.
static void across(void) {
  struct sides s = open_sides();
  char *out = allocate(kBytes), *in = allocate(kBytes);
  for (int turn = 0; turn < s.size * s.others; ++turn) {
    const int low = s.low ? turn / s.others : turn / s.size, high = s.low ? turn % s.others : turn % s.size;
    if (s.rank != (s.low ? low : high)) continue;
    const int peer = s.low ? high : low;
    MPI_Status status;
    fill(out, kBytes, s.rank + s.low * kMembers, peer, turn);
    MPI_Sendrecv(out, kBytes, MPI_BYTE, peer, 3, in, kBytes, MPI_BYTE, peer, 3, s.between, &status);
    expect_status(&status, peer, 3, kBytes);
    expect_bytes(in, kBytes, peer + !s.low * kMembers, s.rank, turn);
  }
  free(out);
  free(in);
  close_sides(&s);
}

static void across_collective(void) {
  struct sides s = open_sides();
  char* buffer = allocate(kBytes);
  for (int from_low = 0; from_low < 2; ++from_low) {
    const int sends = s.low == from_low;
    const int root = sends ? (s.rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    if (root == MPI_ROOT) fill(buffer, kBytes, 0, from_low, 4);
    MPI_Bcast(buffer, kBytes, MPI_BYTE, root, s.between);
    if (!sends) expect_bytes(buffer, kBytes, 0, from_low, 4);
  }
  int mine = s.low ? 1 : 1000, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, s.between);
  expect_equal("the sum of the other side", sum, s.others * (s.low ? 1000 : 1));
  int* all = allocate(sizeof(int) * (size_t)s.others);
  int name = s.rank + s.low * kMembers;
  MPI_Allgather(&name, 1, MPI_INT, all, 1, MPI_INT, s.between);
  for (int r = 0; r < s.others; ++r)
    expect_equal("a member of the other side", all[r], r + !s.low * kMembers);
  MPI_Barrier(s.between);
  free(all);
  free(buffer);
  close_sides(&s);
}

static void merged(void) {
  struct sides s = open_sides();
  MPI_Comm both;
  int size = 0, sum = 0;
  MPI_Intercomm_merge(s.between, s.low, &both);
  MPI_Comm_size(both, &size);
  expect_equal("the size of both sides", size, job.size);
  MPI_Allreduce(&job.rank, &sum, 1, MPI_INT, MPI_SUM, both);
  expect_equal("the sum of both sides", sum, job.size * (job.size - 1) / 2);
  MPI_Comm_free(&both);
  close_sides(&s);
}

static void inter(void) {
  if (job.size < 2) return;
  across();
  across_collective();
  merged();
}

const struct test kIntercommunicatorTests[] = {{"inter", inter}, {NULL, NULL}};
