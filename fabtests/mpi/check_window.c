// One-sided communication: windows of every kind, every way to open and close an epoch.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kBytes = 300000, kSteps = 6 };

static const int kParts[kSteps] = {1, 8, 1000, 5000, 40000, 150000};

struct window {
  MPI_Win win;
  char* memory;
  int created;  // the memory is mine to free
};

static struct window open_window(int kind) {
  struct window w = {.created = kind == 0};
  if (w.created) {
    w.memory = allocate(kBytes);
    MPI_Win_create(w.memory, kBytes, 1, MPI_INFO_NULL, job.comm, &w.win);
  } else {
    MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, job.comm, &w.memory, &w.win);
  }
  memset(w.memory, 0, kBytes);
  MPI_Barrier(job.comm);
  return w;
}

static void close_window(struct window* w) {
  MPI_Win_free(&w->win);
  if (w->created) free(w->memory);
}

// The lower half of a window is written by the rank before, the upper half is read by it.
enum { kHalf = kBytes / 2 };

static int next_rank(void) { return (job.rank + 1) % job.size; }
static int previous_rank(void) { return (job.rank + job.size - 1) % job.size; }

static void fences(void) {
  char *out = allocate(kHalf), *in = allocate(kHalf);
  for (int kind = 0; kind < 2; ++kind) {
    struct window w = open_window(kind);
    for (int step = 0; step < kSteps; ++step) {
      const size_t bytes = (size_t)kParts[step];
      fill(out, bytes, job.rank, next_rank(), step);
      fill(w.memory + kHalf, bytes, job.rank, 0, 50 + step);
      MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
      MPI_Put(out, (int)bytes, MPI_BYTE, next_rank(), 0, (int)bytes, MPI_BYTE, w.win);
      MPI_Get(in, (int)bytes, MPI_BYTE, next_rank(), kHalf, (int)bytes, MPI_BYTE, w.win);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
      expect_bytes(w.memory, bytes, previous_rank(), job.rank, step);
      expect_bytes(in, bytes, next_rank(), 0, 50 + step);
      MPI_Barrier(job.comm);
    }
    close_window(&w);
  }
  free(out);
  free(in);
}

static void post_start_complete_wait(void) {
  struct window w = open_window(1);
  MPI_Group all, writers, targets;
  const int from = previous_rank(), to = next_rank();
  MPI_Comm_group(job.comm, &all);
  MPI_Group_incl(all, 1, &from, &writers);
  MPI_Group_incl(all, 1, &to, &targets);
  char* out = allocate(kHalf);
  for (int step = 0; step < 2 * kSteps; ++step) {
    const size_t bytes = (size_t)kParts[step % kSteps];
    fill(out, bytes, job.rank, to, step);
    MPI_Win_post(writers, 0, w.win);
    MPI_Win_start(targets, 0, w.win);
    MPI_Put(out, (int)bytes, MPI_BYTE, to, 0, (int)bytes, MPI_BYTE, w.win);
    MPI_Win_complete(w.win);
    if (step % 2) {
      int done = 0;
      while (!done) MPI_Win_test(w.win, &done);
    } else {
      MPI_Win_wait(w.win);
    }
    expect_bytes(w.memory, bytes, from, job.rank, step);
  }
  free(out);
  MPI_Group_free(&all);
  MPI_Group_free(&writers);
  MPI_Group_free(&targets);
  close_window(&w);
}

// Each rank adds to a number at rank 0 by reading and writing under an exclusive lock: none may be lost.
static void exclusive_locks(void) {
  enum { kTimes = 25 };
  struct window w = open_window(0);
  for (int i = 0; i < kTimes; ++i) {
    long long number = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
    MPI_Get(&number, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, w.win);
    MPI_Win_flush(0, w.win);
    ++number;
    MPI_Put(&number, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, w.win);
    MPI_Win_unlock(0, w.win);
  }
  MPI_Barrier(job.comm);
  long long total = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win);
  MPI_Get(&total, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, w.win);
  MPI_Win_unlock(0, w.win);
  expect_equal("a number added to under a lock", total, kTimes * job.size);
  MPI_Barrier(job.comm);
  close_window(&w);
}

// One epoch for all; each rank owns a slot in every window.
static void lock_all(void) {
  struct window w = open_window(1);
  const size_t slot = kBytes / (size_t)job.size < 20000 ? kBytes / (size_t)job.size : 20000;
  char *out = allocate(slot * (size_t)job.size), *in = allocate(slot * (size_t)job.size);
  MPI_Request* requests = allocate(sizeof(MPI_Request) * (size_t)job.size);
  MPI_Win_lock_all(0, w.win);
  for (int round = 0; round < 4; ++round) {
    for (int r = 0; r < job.size; ++r) {
      fill(out + slot * (size_t)r, slot, job.rank, r, round);
      if (round % 2) {
        MPI_Rput(out + slot * (size_t)r, (int)slot, MPI_BYTE, r, (MPI_Aint)(slot * (size_t)job.rank),
                 (int)slot, MPI_BYTE, w.win, &requests[r]);
      } else {
        MPI_Put(out + slot * (size_t)r, (int)slot, MPI_BYTE, r, (MPI_Aint)(slot * (size_t)job.rank),
                (int)slot, MPI_BYTE, w.win);
      }
    }
    if (round % 2) MPI_Waitall(job.size, requests, MPI_STATUSES_IGNORE);
    if (round < 2) MPI_Win_flush_all(w.win);
    for (int r = 0; r < job.size && round >= 2; ++r) {
      MPI_Win_flush_local(r, w.win);
      MPI_Win_flush(r, w.win);
    }
    for (int r = 0; r < job.size; ++r) {
      MPI_Rget(in + slot * (size_t)r, (int)slot, MPI_BYTE, r, (MPI_Aint)(slot * (size_t)job.rank), (int)slot,
               MPI_BYTE, w.win, &requests[r]);
    }
    MPI_Waitall(job.size, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < job.size; ++r) expect_bytes(in + slot * (size_t)r, slot, job.rank, r, round);
    MPI_Barrier(job.comm);
    MPI_Win_sync(w.win);
    for (int r = 0; r < job.size; ++r) expect_bytes(w.memory + slot * (size_t)r, slot, r, job.rank, round);
    MPI_Barrier(job.comm);
  }
  MPI_Win_unlock_all(w.win);
  free(out);
  free(in);
  free(requests);
  close_window(&w);
}

static void layouts_in_windows(void) {
  enum { kRows = 400, kColumns = 10 };
  struct window w = open_window(1);
  int* grid = (int*)w.memory;
  int column[kRows];
  MPI_Datatype type;
  MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < kRows; ++i) column[i] = job.rank * 1000 + i;
  MPI_Win_fence(0, w.win);
  MPI_Put(column, kRows, MPI_INT, next_rank(), 3 * sizeof(int), 1, type, w.win);
  MPI_Win_fence(0, w.win);
  for (int i = 0; i < kRows * kColumns; ++i) {
    const int wanted = i % kColumns == 3 ? previous_rank() * 1000 + i / kColumns : 0;
    expect_equal("a column of a window", grid[i], wanted);
  }
  MPI_Win_fence(0, w.win);
  MPI_Get(column, kRows, MPI_INT, next_rank(), 3 * sizeof(int), 1, type, w.win);
  MPI_Win_fence(0, w.win);
  for (int i = 0; i < kRows; ++i) expect_equal("a column read", column[i], job.rank * 1000 + i);
  MPI_Type_free(&type);
  close_window(&w);
}

static void attached(void) {
  MPI_Win win;
  MPI_Aint here = 0, there = 0;
  char *memory = allocate(kHalf), *out = allocate(kHalf);
  MPI_Win_create_dynamic(MPI_INFO_NULL, job.comm, &win);
  for (int round = 0; round < 3; ++round) {
    MPI_Win_attach(win, memory, kHalf);
    MPI_Get_address(memory, &here);
    MPI_Sendrecv(&here, 1, MPI_AINT, previous_rank(), 1, &there, 1, MPI_AINT, next_rank(), 1, job.comm,
                 MPI_STATUS_IGNORE);
    fill(out, 60000, job.rank, next_rank(), round);
    MPI_Win_fence(0, win);
    MPI_Put(out, 60000, MPI_BYTE, next_rank(), there, 60000, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    expect_bytes(memory, 60000, previous_rank(), job.rank, round);
    MPI_Win_detach(win, memory);
    MPI_Barrier(job.comm);
  }
  MPI_Win_free(&win);
  free(memory);
  free(out);
}

const struct test kWindowTests[] = {{"fences", fences},
                                    {"post_start_complete_wait", post_start_complete_wait},
                                    {"exclusive_locks", exclusive_locks},
                                    {"lock_all", lock_all},
                                    {"layouts_in_windows", layouts_in_windows},
                                    {"attached", attached},
                                    {NULL, NULL}};
