// Large numbers: of messages under way, of communicators, of groups, of neighbours.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kMessages = 10000, kSlot = 96, kComms = 100, kBlock = 3000 };

static int next_rank(void) { return (job.rank + 1) % job.size; }
static int previous_rank(void) { return (job.rank + job.size - 1) % job.size; }
static size_t slot_bytes(int serial) { return (size_t)(serial % (kSlot + 1)); }

// The even ones are received before they can come, the odd ones wait unexpected and are taken newest first.
static void outstanding(void) {
  char *out = allocate((size_t)kMessages * kSlot), *in = allocate((size_t)kMessages * kSlot);
  MPI_Request* requests = allocate(sizeof(MPI_Request) * 2 * kMessages);
  int* indices = allocate(sizeof(int) * 2 * kMessages);
  int posted = 0, finished = 0, done = 0;
  for (int i = 0; i < kMessages; i += 2)
    MPI_Irecv(in + (size_t)i * kSlot, kSlot, MPI_BYTE, previous_rank(), i, job.comm, &requests[posted++]);
  for (int i = 0; i < kMessages; ++i) {
    fill(out + (size_t)i * kSlot, slot_bytes(i), job.rank, next_rank(), i);
    MPI_Isend(out + (size_t)i * kSlot, (int)slot_bytes(i), MPI_BYTE, next_rank(), i, job.comm,
              &requests[posted++]);
  }
  MPI_Barrier(job.comm);
  for (int i = kMessages - 1; i >= 0; i -= 2)
    MPI_Irecv(in + (size_t)i * kSlot, kSlot, MPI_BYTE, previous_rank(), i, job.comm, &requests[posted++]);
  for (int turn = 0; turn < 3 && done < posted; ++turn) {
    MPI_Waitsome(posted, requests, &finished, indices, MPI_STATUSES_IGNORE);
    done += finished;
    for (int i = 0; i < finished; ++i)
      expect_equal("a request that is done", requests[indices[i]] == MPI_REQUEST_NULL, 1);
  }
  MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMessages; ++i)
    expect_bytes(in + (size_t)i * kSlot, slot_bytes(i), previous_rank(), job.rank, i);
  free(out);
  free(in);
  free(requests);
  free(indices);
}

// One message in each of many communicators, received in the opposite order, twice: numbers are used again.
static void many_communicators(void) {
  static char out[kComms][kSlot], in[kComms][kSlot];
  MPI_Comm comms[kComms];
  MPI_Request requests[kComms];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kComms; ++i) {
      MPI_Comm_dup(i % 3 == 2 ? comms[i - 1] : job.comm, &comms[i]);
      fill(out[i], kSlot, job.rank, next_rank(), round * kComms + i);
      MPI_Isend(out[i], kSlot, MPI_BYTE, next_rank(), 1, comms[i], &requests[i]);
    }
    for (int i = kComms - 1; i >= 0; --i) {
      MPI_Recv(in[i], kSlot, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], MPI_STATUS_IGNORE);
      expect_bytes(in[i], kSlot, previous_rank(), job.rank, round * kComms + i);
    }
    MPI_Waitall(kComms, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kComms; ++i) MPI_Comm_free(&comms[i]);
  }
}

// Splits into every number of groups, and those again; ranks within run backwards.
static void many_groups(void) {
  for (int colours = 1; colours <= job.size; ++colours) {
    MPI_Comm part, half;
    int rank = 0, size = 0, sum = 0, expected = 0;
    MPI_Comm_split(job.comm, job.rank % colours, -job.rank, &part);
    MPI_Comm_rank(part, &rank);
    MPI_Comm_size(part, &size);
    for (int r = job.rank % colours; r < job.size; r += colours) expected += r;
    MPI_Allreduce(&job.rank, &sum, 1, MPI_INT, MPI_SUM, part);
    expect_equal("the sum of a group", sum, expected);
    MPI_Comm_split(part, rank < size / 2, 0, &half);
    int one = 1, members = 0;
    MPI_Allreduce(&one, &members, 1, MPI_INT, MPI_SUM, half);
    expect_equal("the size of half a group", members, rank < size / 2 ? size / 2 : size - size / 2);
    MPI_Comm_free(&half);
    MPI_Comm_free(&part);
  }
  // Made by its members alone, while the others do something else.
  MPI_Group all, odd;
  const int range[1][3] = {{job.size - 1, 0, -2}};
  MPI_Comm_group(job.comm, &all);
  MPI_Group_range_incl(all, 1, (int(*)[3])range, &odd);
  if ((job.size - 1 - job.rank) % 2 == 0) {
    MPI_Comm comm;
    int size = 0, root = job.rank;
    MPI_Comm_create_group(job.comm, odd, 5, &comm);
    MPI_Comm_size(comm, &size);
    MPI_Bcast(&root, 1, MPI_INT, 0, comm);
    expect_equal("the root of a group", root, job.size - 1);
    expect_equal("the size of a group", size, (job.size + 1) / 2);
    MPI_Comm_free(&comm);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&odd);
}

// A graph in which each rank writes to the two behind it, in parts of unequal size.
static void graph(void) {
  if (job.size < 3) return;
  const int to[2] = {next_rank(), (job.rank + 2) % job.size};
  const int from[2] = {previous_rank(), (job.rank + job.size - 2) % job.size};
  const int ones[2] = {1, 1};
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(job.comm, 2, from, ones, 2, to, ones, MPI_INFO_NULL, 0, &comm);
  char *out = allocate(3 * kBlock), *in = allocate(3 * kBlock);
  const int counts[2] = {kBlock, 2 * kBlock}, places[2] = {0, kBlock};
  for (int way = 0; way < 2; ++way) {
    fill(out, kBlock, job.rank, to[0], way);
    fill(out + kBlock, 2 * kBlock, job.rank, to[1], 10 + way);
    memset(in, 0, 3 * kBlock);
    if (way == 0) {
      MPI_Neighbor_alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, comm);
    } else {
      MPI_Request request;
      MPI_Ineighbor_alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    expect_bytes(in, kBlock, from[0], job.rank, way);
    expect_bytes(in + kBlock, 2 * kBlock, from[1], job.rank, 10 + way);
  }
  fill(out, kBlock, job.rank, 0, 7);
  MPI_Neighbor_allgather(out, kBlock, MPI_BYTE, in, kBlock, MPI_BYTE, comm);
  for (int i = 0; i < 2; ++i) expect_bytes(in + i * kBlock, kBlock, from[i], 0, 7);
  MPI_Comm_free(&comm);
  free(out);
  free(in);
}

// Messages of no bytes keep their order and their tags, whatever else is under way.
static void empty(void) {
  enum { kEmpty = 2000 };
  static MPI_Request requests[kEmpty];
  for (int i = 0; i < kEmpty; ++i) MPI_Isend(NULL, 0, MPI_BYTE, next_rank(), i, job.comm, &requests[i]);
  for (int i = 0; i < kEmpty; ++i) {
    MPI_Status status;
    MPI_Recv(NULL, 0, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : previous_rank(), MPI_ANY_TAG, job.comm, &status);
    expect_status(&status, previous_rank(), i, 0);
  }
  MPI_Waitall(kEmpty, requests, MPI_STATUSES_IGNORE);
}

const struct test kManyObjectTests[] = {{"outstanding", outstanding},
                                        {"many_communicators", many_communicators},
                                        {"many_groups", many_groups},
                                        {"graph", graph},
                                        {"empty", empty},
                                        {NULL, NULL}};
