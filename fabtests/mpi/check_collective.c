// Collective operations, each with every root where there is one, over small and large blocks.
#include <stdlib.h>
#include <string.h>

#include "check.h"

static size_t block(int i) { return kSizes[i] > 262144 ? 262144 : kSizes[i]; }

static void all_to_all(void) {
  for (int round = 0; round < job.rounds; ++round) {
    for (int i = 0; i < kSizeCount; ++i) {
      const size_t bytes = block(i);
      char* out = allocate(bytes * (size_t)job.size);
      char* in = allocate(bytes * (size_t)job.size);
      for (int peer = 0; peer < job.size; ++peer) fill(out + bytes * (size_t)peer, bytes, job.rank, peer, i);
      MPI_Alltoall(out, (int)bytes, MPI_BYTE, in, (int)bytes, MPI_BYTE, job.comm);
      for (int peer = 0; peer < job.size; ++peer)
        expect_bytes(in + bytes * (size_t)peer, bytes, peer, job.rank, i);
      free(out);
      free(in);
    }
  }
}

// Every pair of ranks has another size.
static void all_to_all_mixed(void) {
  const size_t ranks = (size_t)job.size;
  int* counts = allocate(sizeof(int) * ranks * 4);
  int *out_count = counts, *out_at = counts + ranks, *in_count = counts + 2 * ranks,
      *in_at = counts + 3 * ranks;
  int out_total = 0, in_total = 0;
  for (int peer = 0; peer < job.size; ++peer) {
    out_count[peer] = (int)kSizes[(job.rank * 3 + peer * 5) % kSizeCount];
    in_count[peer] = (int)kSizes[(peer * 3 + job.rank * 5) % kSizeCount];
    out_at[peer] = out_total;
    in_at[peer] = in_total;
    out_total += out_count[peer];
    in_total += in_count[peer];
  }
  char* out = allocate((size_t)out_total);
  char* in = allocate((size_t)in_total);
  for (int round = 0; round < 3 * job.rounds; ++round) {
    for (int peer = 0; peer < job.size; ++peer) {
      fill(out + out_at[peer], (size_t)out_count[peer], job.rank, peer, round);
    }
    memset(in, 0, (size_t)in_total);
    MPI_Alltoallv(out, out_count, out_at, MPI_BYTE, in, in_count, in_at, MPI_BYTE, job.comm);
    for (int peer = 0; peer < job.size; ++peer) {
      expect_bytes(in + in_at[peer], (size_t)in_count[peer], peer, job.rank, round);
    }
  }
  free(out);
  free(in);
  free(counts);
}

static void all_reduce(void) {
  static const int counts[] = {1, 2, 128, 1000, 2048, 8192, 131072};
  const long long ranks = job.size;
  for (int c = 0; c < 7; ++c) {
    const int count = counts[c];
    long long* out = allocate(sizeof(long long) * (size_t)count);
    long long* in = allocate(sizeof(long long) * (size_t)count);
    for (int round = 0; round < job.rounds; ++round) {
      for (int i = 0; i < count; ++i) out[i] = (long long)job.rank * 1000003 + i + round;
      MPI_Allreduce(out, in, count, MPI_LONG_LONG, MPI_SUM, job.comm);
      const long long base = ranks * (ranks - 1) / 2 * 1000003;
      for (int i = 0; i < count; ++i) expect_equal("a sum", in[i], base + ranks * (i + round));
      MPI_Allreduce(out, in, count, MPI_LONG_LONG, MPI_MAX, job.comm);
      for (int i = 0; i < count; ++i) expect_equal("a maximum", in[i], (ranks - 1) * 1000003 + i + round);
      MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_LONG_LONG, MPI_MIN, job.comm);
      for (int i = 0; i < count; ++i) expect_equal("a minimum", out[i], i + round);
    }
    free(out);
    free(in);
  }
}

static void broadcast(void) {
  char* buffer = allocate(kSizeMax);
  for (int root = 0; root < job.size; ++root) {
    for (int i = 0; i < kSizeCount; ++i) {
      memset(buffer, 0, kSizes[i]);
      if (job.rank == root) fill(buffer, kSizes[i], root, 0, i);
      MPI_Bcast(buffer, (int)kSizes[i], MPI_BYTE, root, job.comm);
      expect_bytes(buffer, kSizes[i], root, 0, i);
    }
  }
  free(buffer);
}

static void gather_and_scatter(void) {
  for (int root = 0; root < job.size; ++root) {
    for (int i = 0; i < kSizeCount; ++i) {
      const size_t bytes = block(i);
      char* own = allocate(bytes);
      char* all = allocate(bytes * (size_t)job.size);
      fill(own, bytes, job.rank, root, i);
      MPI_Gather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, root, job.comm);
      for (int peer = 0; peer < job.size && job.rank == root; ++peer) {
        expect_bytes(all + bytes * (size_t)peer, bytes, peer, root, i);
        fill(all + bytes * (size_t)peer, bytes, root, peer, i + 100);
      }
      MPI_Scatter(all, (int)bytes, MPI_BYTE, own, (int)bytes, MPI_BYTE, root, job.comm);
      expect_bytes(own, bytes, root, job.rank, i + 100);
      free(own);
      free(all);
    }
  }
}

static void all_gather(void) {
  for (int i = 0; i < kSizeCount; ++i) {
    const size_t bytes = block(i);
    char* own = allocate(bytes);
    char* all = allocate(bytes * (size_t)job.size);
    fill(own, bytes, job.rank, 0, i);
    MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, job.comm);
    for (int peer = 0; peer < job.size; ++peer) expect_bytes(all + bytes * (size_t)peer, bytes, peer, 0, i);
    free(own);
    free(all);
  }
}

// Several collectives under way at once, finished in the opposite order.
static void overlapping(void) {
  enum { kOperations = 8, kBytes = 20000 };
  MPI_Request requests[kOperations];
  char* buffers[kOperations];
  for (int round = 0; round < job.rounds; ++round) {
    for (int i = 0; i < kOperations; ++i) {
      const int root = i % job.size;
      buffers[i] = allocate(kBytes);
      if (job.rank == root) fill(buffers[i], kBytes, root, 0, i + round);
      MPI_Ibcast(buffers[i], kBytes, MPI_BYTE, root, job.comm, &requests[i]);
    }
    for (int i = kOperations - 1; i >= 0; --i) {
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      expect_bytes(buffers[i], kBytes, i % job.size, 0, i + round);
      free(buffers[i]);
    }
  }
}

static void barriers(void) {
  for (int i = 0; i < 200 * job.rounds; ++i) MPI_Barrier(job.comm);
}

const struct test kCollectiveTests[] = {{"all_to_all", all_to_all},
                                        {"all_to_all_mixed", all_to_all_mixed},
                                        {"all_reduce", all_reduce},
                                        {"broadcast", broadcast},
                                        {"gather_and_scatter", gather_and_scatter},
                                        {"all_gather", all_gather},
                                        {"overlapping", overlapping},
                                        {"barriers", barriers},
                                        {NULL, NULL}};
