// Collective operations, blocking and not, on communicators of every shape: odd sizes, turned round, one rank
// alone, two groups facing each other.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kCount = 1000 };

struct group {
  MPI_Comm comm;
  int rank, size;
  int wait;  // start the operation and wait, instead of the blocking call
};

static void finish(MPI_Request* request) {
  int done = 0;
  for (int i = 0; i < 10 && !done; ++i) MPI_Test(request, &done, MPI_STATUS_IGNORE);
  if (!done) MPI_Wait(request, MPI_STATUS_IGNORE);
}

// Calls MPI_X or MPI_IX, as the group wants it.
#define RUN(group, operation, ioperation, ...)           \
  do {                                                   \
    if ((group)->wait) {                                 \
      MPI_Request request_;                              \
      ioperation(__VA_ARGS__, (group)->comm, &request_); \
      finish(&request_);                                 \
    } else {                                             \
      operation(__VA_ARGS__, (group)->comm);             \
    }                                                    \
  } while (0)

static int value(int rank, int i) { return rank * 7 + i % 1000; }

static void reductions(const struct group* g) {
  static int out[kCount], in[kCount];
  const int before = g->rank * (g->rank - 1) / 2 * 7, all = g->size * (g->size - 1) / 2 * 7;
  for (int i = 0; i < kCount; ++i) out[i] = value(g->rank, i);
  for (int root = 0; root < g->size; ++root) {
    memset(in, 0, sizeof in);
    RUN(g, MPI_Reduce, MPI_Ireduce, out, in, kCount, MPI_INT, MPI_SUM, root);
    for (int i = 0; i < kCount && g->rank == root; ++i)
      expect_equal("a reduced sum", in[i], all + g->size * (i % 1000));
  }
  RUN(g, MPI_Allreduce, MPI_Iallreduce, out, in, kCount, MPI_INT, MPI_MAX);
  for (int i = 0; i < kCount; ++i) expect_equal("a maximum of all", in[i], value(g->size - 1, i));
  RUN(g, MPI_Scan, MPI_Iscan, out, in, kCount, MPI_INT, MPI_SUM);
  for (int i = 0; i < kCount; ++i)
    expect_equal("a running sum", in[i], before + g->rank * 7 + (g->rank + 1) * (i % 1000));
  RUN(g, MPI_Exscan, MPI_Iexscan, out, in, kCount, MPI_INT, MPI_SUM);
  for (int i = 0; i < kCount && g->rank > 0; ++i)
    expect_equal("a running sum without me", in[i], before + g->rank * (i % 1000));
}

static void reduce_scatter(const struct group* g) {
  enum { kBlock = 500 };
  int* out = allocate(sizeof(int) * kBlock * (size_t)g->size);
  int* counts = allocate(sizeof(int) * (size_t)g->size);
  int in[2 * kBlock];
  const int all = g->size * (g->size - 1) / 2 * 7;
  for (int i = 0; i < kBlock * g->size; ++i) out[i] = value(g->rank, i);
  RUN(g, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, out, in, kBlock, MPI_INT, MPI_SUM);
  for (int i = 0; i < kBlock; ++i)
    expect_equal("a block of sums", in[i], all + g->size * ((g->rank * kBlock + i) % 1000));
  // The first gets more, the last less, and the sizes still add up.
  for (int r = 0; r < g->size; ++r) counts[r] = kBlock;
  counts[0] += g->size > 1 ? 100 : 0;
  counts[g->size - 1] -= g->size > 1 ? 100 : 0;
  const int first = g->rank == 0 ? 0 : g->rank * kBlock + 100;
  RUN(g, MPI_Reduce_scatter, MPI_Ireduce_scatter, out, in, counts, MPI_INT, MPI_SUM);
  for (int i = 0; i < counts[g->rank]; ++i)
    expect_equal("a part of sums", in[i], all + g->size * ((first + i) % 1000));
  free(out);
  free(counts);
}

// Rank r has 300 * r + 1 bytes for every rank: no two sizes are equal.
static void uneven(const struct group* g) {
  int* counts = allocate(sizeof(int) * 2 * (size_t)g->size);
  int* places = counts + g->size;
  int total = 0;
  for (int r = 0; r < g->size; ++r) {
    counts[r] = 300 * r * (r % 2 ? 40 : 1) + 1;
    places[r] = total + r;  // a hole of one byte before each
    total = places[r] + counts[r];
  }
  char *own = allocate((size_t)counts[g->rank]), *all = allocate((size_t)total);
  fill(own, (size_t)counts[g->rank], g->rank, 0, 5);
  for (int root = 0; root < g->size; ++root) {
    memset(all, 0x77, (size_t)total);
    RUN(g, MPI_Gatherv, MPI_Igatherv, own, counts[g->rank], MPI_BYTE, all, counts, places, MPI_BYTE, root);
    for (int r = 0; r < g->size && g->rank == root; ++r) {
      expect_bytes(all + places[r], (size_t)counts[r], r, 0, 5);
      if (r) expect_equal("a hole between parts", all[places[r] - 1], 0x77);
    }
    if (g->rank != root) memset(all, 0, (size_t)total);
    memset(own, 0, (size_t)counts[g->rank]);
    RUN(g, MPI_Scatterv, MPI_Iscatterv, all, counts, places, MPI_BYTE, own, counts[g->rank], MPI_BYTE, root);
    expect_bytes(own, (size_t)counts[g->rank], g->rank, 0, 5);
  }
  memset(all, 0, (size_t)total);
  RUN(g, MPI_Allgatherv, MPI_Iallgatherv, own, counts[g->rank], MPI_BYTE, all, counts, places, MPI_BYTE);
  for (int r = 0; r < g->size; ++r) expect_bytes(all + places[r], (size_t)counts[r], r, 0, 5);
  free(counts);
  free(own);
  free(all);
}

// Each pair with a layout of its own.
static void all_to_all_typed(const struct group* g) {
  const size_t ranks = (size_t)g->size;
  int *ones = allocate(sizeof(int) * ranks), *places = allocate(sizeof(int) * ranks);
  MPI_Datatype* types = allocate(sizeof(MPI_Datatype) * 2 * ranks);
  enum { kSlot = 40000 };
  char *out = allocate(kSlot * ranks), *in = allocate(kSlot * ranks);
  for (int r = 0; r < g->size; ++r) {
    ones[r] = 1;
    places[r] = r * kSlot;
    MPI_Type_contiguous(100 + 900 * ((g->rank + 3 * r) % 40), MPI_BYTE, &types[r]);
    MPI_Type_contiguous(100 + 900 * ((r + 3 * g->rank) % 40), MPI_BYTE, &types[g->size + r]);
    MPI_Type_commit(&types[r]);
    MPI_Type_commit(&types[g->size + r]);
    fill(out + (size_t)r * kSlot, kSlot, g->rank, r, 8);
  }
  RUN(g, MPI_Alltoallw, MPI_Ialltoallw, out, ones, places, types, in, ones, places, types + g->size);
  for (int r = 0; r < g->size; ++r) {
    const size_t bytes = 100 + 900 * (size_t)((r + 3 * g->rank) % 40);
    expect_bytes(in + (size_t)r * kSlot, bytes, r, g->rank, 8);
    MPI_Type_free(&types[r]);
    MPI_Type_free(&types[g->size + r]);
  }
  free(ones);
  free(places);
  free(types);
  free(out);
  free(in);
}

static void everything_on(MPI_Comm comm) {
  struct group g = {.comm = comm};
  MPI_Comm_rank(comm, &g.rank);
  MPI_Comm_size(comm, &g.size);
  for (g.wait = 0; g.wait < 2; ++g.wait) {
    reductions(&g);
    reduce_scatter(&g);
    uneven(&g);
    all_to_all_typed(&g);
  }
}

static void odd_groups(void) {
  MPI_Comm parts;
  MPI_Comm_split(job.comm, job.rank % 3 == 2, -job.rank, &parts);  // uneven, and turned round
  everything_on(parts);
  MPI_Comm_free(&parts);
  MPI_Comm_split(job.comm, job.rank == job.size - 1 ? MPI_UNDEFINED : 0, job.rank, &parts);
  if (parts != MPI_COMM_NULL) {
    everything_on(parts);
    MPI_Comm_free(&parts);
  }
  everything_on(job.comm);
  everything_on(MPI_COMM_SELF);
}

static void neighbours(void) {
  if (job.size < 3)
    return;  // left and right would be one, and libraries disagree which of the two comes first
  const int periodic = 1, ranks = job.size;
  MPI_Comm circle;
  MPI_Cart_create(job.comm, 1, &ranks, &periodic, 0, &circle);
  int rank = 0, left = 0, right = 0;
  MPI_Comm_rank(circle, &rank);
  MPI_Cart_shift(circle, 0, 1, &left, &right);
  enum { kBytes = 20000 };
  char *out = allocate(2 * kBytes), *in = allocate(2 * kBytes);
  fill(out, kBytes, rank, left, 1);
  fill(out + kBytes, kBytes, rank, right, 2);
  MPI_Neighbor_alltoall(out, kBytes, MPI_BYTE, in, kBytes, MPI_BYTE, circle);
  expect_bytes(in, kBytes, left, rank, 2);
  expect_bytes(in + kBytes, kBytes, right, rank, 1);
  free(out);
  free(in);
  MPI_Comm_free(&circle);
}

const struct test kGroupTests[] = {{"odd_groups", odd_groups}, {"neighbours", neighbours}, {NULL, NULL}};
