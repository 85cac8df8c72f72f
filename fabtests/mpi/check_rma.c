// One-sided communication beyond check_window.c and check_accumulate.c: operations with requests, single
// numbers of every type, pairs and complex numbers, layouts, memory shared by a node, many windows, many
// operations.
#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int next_rank(void) { return (job.rank + 1) % job.size; }
static int previous_rank(void) { return (job.rank + job.size - 1) % job.size; }

static void accumulates_with_requests(void) {
  enum { kLength = 5000, kTimes = 6 };
  MPI_Win win;
  long long *memory = NULL, *out = allocate(sizeof(long long) * kLength),
            *before = allocate(sizeof(long long) * kLength);
  MPI_Win_allocate(sizeof(long long) * kLength, sizeof(long long), MPI_INFO_NULL, job.comm, &memory, &win);
  for (int i = 0; i < kLength; ++i) memory[i] = i, out[i] = job.rank + 1;
  MPI_Barrier(job.comm);
  MPI_Win_lock_all(0, win);
  for (int time = 0; time < kTimes; ++time) {
    MPI_Request requests[2];
    MPI_Raccumulate(out, kLength, MPI_LONG_LONG, next_rank(), 0, kLength, MPI_LONG_LONG, MPI_SUM, win,
                    &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(next_rank(), win);
    MPI_Rget_accumulate(out, kLength, MPI_LONG_LONG, before, kLength, MPI_LONG_LONG, next_rank(), 0, kLength,
                        MPI_LONG_LONG, MPI_SUM, win, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < kLength; ++i)
      expect_equal("what was there", before[i], i + (2 * time + 1) * (long long)(job.rank + 1));
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(job.comm);
  MPI_Win_lock(MPI_LOCK_SHARED, job.rank, 0, win);
  for (int i = 0; i < kLength; ++i)
    expect_equal("what was added", memory[i], i + 2LL * kTimes * (previous_rank() + 1));
  MPI_Win_unlock(job.rank, win);
  MPI_Win_free(&win);
  free(out);
  free(before);
}

// Fetch and add, then compare and swap, on single numbers of each integer type, all ranks at rank 0.
#define SINGLE_NUMBER(name, type, datatype)                                            \
  static void name(MPI_Win win) {                                                      \
    const type one = 1, none = 0, mine = (type)(job.rank + 1);                         \
    type found = 0, sum = 0;                                                           \
    MPI_Fetch_and_op(&mine, &found, datatype, 0, 0, MPI_SUM, win);                     \
    MPI_Win_flush(0, win);                                                             \
    MPI_Barrier(job.comm);                                                             \
    MPI_Fetch_and_op(&none, &sum, datatype, 0, 0, MPI_NO_OP, win);                     \
    MPI_Win_flush(0, win);                                                             \
    expect_equal(#type ": a sum of all", (long long)sum, job.size*(job.size + 1) / 2); \
    MPI_Compare_and_swap(&one, &none, &found, datatype, 0, 16, win);                   \
    MPI_Win_flush(0, win);                                                             \
    int first = found == 0, firsts = 0;                                                \
    MPI_Allreduce(&first, &firsts, 1, MPI_INT, MPI_SUM, job.comm);                     \
    expect_equal(#type ": ranks that swapped", firsts, 1);                             \
  }
SINGLE_NUMBER(single_i8, int8_t, MPI_INT8_T)
SINGLE_NUMBER(single_u8, uint8_t, MPI_UINT8_T)
SINGLE_NUMBER(single_i16, int16_t, MPI_INT16_T)
SINGLE_NUMBER(single_u16, uint16_t, MPI_UINT16_T)
SINGLE_NUMBER(single_i32, int32_t, MPI_INT32_T)
SINGLE_NUMBER(single_u32, uint32_t, MPI_UINT32_T)
SINGLE_NUMBER(single_i64, int64_t, MPI_INT64_T)
SINGLE_NUMBER(single_u64, uint64_t, MPI_UINT64_T)
SINGLE_NUMBER(single_long, long, MPI_LONG)
SINGLE_NUMBER(single_size, MPI_Aint, MPI_AINT)

static void single_numbers(void) {
  void (*const kinds[])(MPI_Win) = {single_i8,  single_u8,  single_i16, single_u16,  single_i32,
                                    single_u32, single_i64, single_u64, single_long, single_size};
  MPI_Win win;
  char* memory = NULL;
  MPI_Win_allocate(32, 1, MPI_INFO_NULL, job.comm, &memory, &win);
  MPI_Win_lock_all(0, win);
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
    memset(memory, 0, 32);
    MPI_Win_sync(win);
    MPI_Barrier(job.comm);
    kinds[k](win);
    MPI_Barrier(job.comm);
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}

// Numbers that few networks know: complex ones, and the largest with its place. (With a place behind a
// double, which leaves a hole, Open MPI knows no such operation on windows.)
static void unusual_numbers(void) {
  enum { kLength = 100 };
  struct placed {
    int value, place;
  };
  double complex z[kLength];
  struct placed p[kLength];
  MPI_Win sums, places;
  double complex* sum = NULL;
  struct placed* most = NULL;
  MPI_Win_allocate(sizeof z, sizeof z[0], MPI_INFO_NULL, job.comm, &sum, &sums);
  MPI_Win_allocate(sizeof p, sizeof p[0], MPI_INFO_NULL, job.comm, &most, &places);
  for (int i = 0; i < kLength; ++i) {
    sum[i] = 1;
    most[i] = (struct placed){-1, -1};
    z[i] = job.rank + 1 + i * I;
    p[i] = (struct placed){(job.rank + i) % job.size, job.rank};
  }
  MPI_Win_fence(0, sums);
  MPI_Win_fence(0, places);
  for (int r = 0; r < job.size; ++r) {
    MPI_Accumulate(z, kLength, MPI_C_DOUBLE_COMPLEX, r, 0, kLength, MPI_C_DOUBLE_COMPLEX, MPI_SUM, sums);
    MPI_Accumulate(p, kLength, MPI_2INT, r, 0, kLength, MPI_2INT, MPI_MAXLOC, places);
  }
  MPI_Win_fence(0, sums);
  MPI_Win_fence(0, places);
  for (int i = 0; i < kLength; ++i) {
    expect_equal("a real part", (long long)creal(sum[i]), 1 + job.size * (job.size + 1) / 2);
    expect_equal("an imaginary part", (long long)cimag(sum[i]), (long long)i * job.size);
    expect_equal("the largest", most[i].value, job.size - 1);
    expect_equal("its place", (most[i].place + i) % job.size, job.size - 1);
  }
  MPI_Win_free(&sums);
  MPI_Win_free(&places);
}

// Columns are added to columns of another width.
static void accumulated_layouts(void) {
  enum { kRows = 300, kWidth = 4, kTargetWidth = 6 };
  MPI_Datatype here, there;
  MPI_Win win;
  int *memory = NULL, out[kRows * kWidth];
  MPI_Type_vector(kRows, 1, kWidth, MPI_INT, &here);
  MPI_Type_vector(kRows, 1, kTargetWidth, MPI_INT, &there);
  MPI_Type_commit(&here);
  MPI_Type_commit(&there);
  MPI_Win_allocate(sizeof(int) * kRows * kTargetWidth, sizeof(int), MPI_INFO_NULL, job.comm, &memory, &win);
  for (int i = 0; i < kRows * kTargetWidth; ++i) memory[i] = 7;
  for (int i = 0; i < kRows * kWidth; ++i) out[i] = i;
  MPI_Win_fence(0, win);
  for (int r = 0; r < job.size; ++r) MPI_Accumulate(out + 1, 1, here, r, 2, 1, there, MPI_SUM, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kRows * kTargetWidth; ++i) {
    const int row = i / kTargetWidth;
    expect_equal("a number of a grid", memory[i],
                 i % kTargetWidth == 2 ? 7 + job.size * (row * kWidth + 1) : 7);
  }
  MPI_Win_free(&win);
  MPI_Type_free(&here);
  MPI_Type_free(&there);
}

// The processes of a node see each other's memory, and the window works beside it.
static void shared_by_a_node(void) {
  MPI_Comm node;
  MPI_Win win;
  int rank = 0, size = 0, *mine = NULL;
  MPI_Comm_split_type(job.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &rank);
  MPI_Comm_size(node, &size);
  MPI_Win_allocate_shared(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 4; ++i) mine[i] = 0;
  mine[0] = 100 + rank;
  MPI_Win_sync(win);
  MPI_Barrier(node);
  MPI_Win_sync(win);
  for (int r = 0; r < size; ++r) {
    MPI_Aint bytes = 0;
    int unit = 0, *theirs = NULL;
    MPI_Win_shared_query(win, r, &bytes, &unit, &theirs);
    expect_equal("a neighbour's memory", theirs[0], 100 + r);
  }
  int value = 200 + rank, ticket = -1, one = 1;
  MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 1, 1, MPI_INT, win);
  MPI_Fetch_and_op(&one, &ticket, MPI_INT, 0, 2, MPI_SUM, win);
  MPI_Win_flush_all(win);
  MPI_Barrier(node);
  MPI_Win_sync(win);
  expect_equal("what a neighbour put", mine[1], 200 + (rank + size - 1) % size);
  expect_equal("a ticket of a neighbour", ticket >= 0 && ticket < size, 1);
  if (rank == 0) expect_equal("what all neighbours added", mine[2], size);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
}

static void many_windows(void) {
  enum { kWindows = 40, kBytes = 2000 };
  MPI_Win wins[kWindows];
  char *memory[kWindows], out[kBytes];
  for (int i = 0; i < kWindows; ++i)
    MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, job.comm, &memory[i], &wins[i]);
  for (int i = kWindows - 1; i >= 0; --i) {
    fill(out, kBytes, job.rank, next_rank(), i);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, wins[i]);
    MPI_Put(out, kBytes, MPI_BYTE, next_rank(), 0, kBytes, MPI_BYTE, wins[i]);
    MPI_Win_unlock(next_rank(), wins[i]);
  }
  MPI_Barrier(job.comm);
  for (int i = 0; i < kWindows; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, job.rank, 0, wins[i]);
    expect_bytes(memory[i], kBytes, previous_rank(), job.rank, i);
    MPI_Win_unlock(job.rank, wins[i]);
    MPI_Win_free(&wins[i]);
  }
}

// Thousands of small ones and some large ones before one flush.
static void many_operations(void) {
  enum { kPieces = 4000, kPiece = 24, kLarge = 3 << 20, kBytes = kPieces * kPiece + kLarge };
  MPI_Win win;
  char *memory = NULL, *out = allocate(kBytes), *in = allocate(kBytes);
  MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, job.comm, &memory, &win);
  MPI_Barrier(job.comm);
  fill(out, kBytes, job.rank, next_rank(), 1);
  MPI_Win_lock_all(0, win);
  MPI_Put(out + kPieces * kPiece, kLarge, MPI_BYTE, next_rank(), kPieces * kPiece, kLarge, MPI_BYTE, win);
  for (int i = 0; i < kPieces; ++i) {
    const int at = (i * 7919 % kPieces) * kPiece;
    MPI_Put(out + at, kPiece, MPI_BYTE, next_rank(), at, kPiece, MPI_BYTE, win);
  }
  MPI_Win_flush(next_rank(), win);
  MPI_Get(in + kPieces * kPiece, kLarge, MPI_BYTE, next_rank(), kPieces * kPiece, kLarge, MPI_BYTE, win);
  for (int i = 0; i < kPieces; ++i) {
    const int at = (i * 6007 % kPieces) * kPiece;
    MPI_Get(in + at, kPiece, MPI_BYTE, next_rank(), at, kPiece, MPI_BYTE, win);
  }
  MPI_Win_flush_all(win);
  expect_bytes(in, kBytes, job.rank, next_rank(), 1);
  MPI_Barrier(job.comm);
  MPI_Win_sync(win);
  expect_bytes(memory, kBytes, previous_rank(), job.rank, 1);
  MPI_Barrier(job.comm);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  free(out);
  free(in);
}

const struct test kRmaTests[] = {{"accumulates_with_requests", accumulates_with_requests},
                                 {"single_numbers", single_numbers},
                                 {"unusual_numbers", unusual_numbers},
                                 {"accumulated_layouts", accumulated_layouts},
                                 {"shared_by_a_node", shared_by_a_node},
                                 {"many_windows", many_windows},
                                 {"many_operations", many_operations},
                                 {NULL, NULL}};
