// Messages between two ranks at a time: every size, both directions, many at once, before and after the
// receive.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kTag = 7, kStorm = 96, kUnexpected = 200 };

static size_t storm_size(int index) { return kSizes[(index * 5 + 3) % (kSizeCount - 2)]; }

static void ring(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  char* out = allocate(kSizeMax);
  char* in = allocate(kSizeMax);
  for (int round = 0; round < job.rounds; ++round) {
    for (int i = 0; i < kSizeCount; ++i) {
      MPI_Status status;
      fill(out, kSizes[i], job.rank, next, round);
      memset(in, 0xa5, kSizes[i]);
      MPI_Sendrecv(out, (int)kSizes[i], MPI_BYTE, next, kTag, in, kSizeMax, MPI_BYTE, previous, kTag,
                   job.comm, &status);
      expect_status(&status, previous, kTag, kSizes[i]);
      expect_bytes(in, kSizes[i], previous, job.rank, round);
    }
  }
  free(out);
  free(in);
}

// Strict ping-pong of each pair in turn, with a different size each way.
static void pairs(void) {
  char* buffer = allocate(kSizeMax);
  for (int low = 0; low < job.size; ++low) {
    for (int high = low + 1; high < job.size; ++high) {
      if (job.rank != low && job.rank != high) continue;
      const int peer = job.rank == low ? high : low;
      for (int i = 0; i < kSizeCount; ++i) {
        const size_t there = kSizes[i];
        const size_t back = kSizes[kSizeCount - 1 - i];
        for (int leg = 0; leg < 2; ++leg) {
          const size_t bytes = leg ? back : there;
          if ((job.rank == low) == (leg == 0)) {
            fill(buffer, bytes, job.rank, peer, i);
            MPI_Send(buffer, (int)bytes, MPI_BYTE, peer, leg, job.comm);
          } else {
            MPI_Status status;
            MPI_Recv(buffer, kSizeMax, MPI_BYTE, peer, leg, job.comm, &status);
            expect_status(&status, peer, leg, bytes);
            expect_bytes(buffer, bytes, peer, job.rank, i);
          }
        }
      }
    }
  }
  free(buffer);
}

// Each rank sends many messages to every rank; receives are posted in the opposite order of the tags.
static void storm(void) {
  const int total = job.size * kStorm;
  MPI_Request* requests = allocate(sizeof(MPI_Request) * 2 * (size_t)total);
  char** in = allocate(sizeof(char*) * (size_t)total);
  char** out = allocate(sizeof(char*) * (size_t)total);
  for (int round = 0; round < job.rounds; ++round) {
    int posted = 0;
    for (int i = 0; i < total; ++i) {
      const int peer = i % job.size;
      const int serial = kStorm - 1 - i / job.size;
      in[i] = allocate(storm_size(serial));
      MPI_Irecv(in[i], (int)storm_size(serial), MPI_BYTE, peer, serial, job.comm, &requests[posted++]);
    }
    for (int i = 0; i < total; ++i) {
      const int peer = (i + job.rank) % job.size;
      const int serial = i / job.size;
      out[i] = allocate(storm_size(serial));
      fill(out[i], storm_size(serial), job.rank, peer, serial);
      MPI_Isend(out[i], (int)storm_size(serial), MPI_BYTE, peer, serial, job.comm, &requests[posted++]);
    }
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < total; ++i) {
      const int serial = kStorm - 1 - i / job.size;
      expect_bytes(in[i], storm_size(serial), i % job.size, job.rank, serial);
      free(in[i]);
      free(out[i]);
    }
  }
  free(requests);
  free(in);
  free(out);
}

// A flag that arrives last tells that all the others wait unexpected; they are then taken newest tag first.
static void unexpected(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  const size_t large = 65539;
  char* in = allocate(large);
  char* out = allocate(large * kUnexpected);
  MPI_Request requests[kUnexpected + 1];
  for (int serial = 0; serial < kUnexpected; ++serial) {
    const size_t bytes = serial % 10 == 9 ? large : (size_t)serial * 7;
    fill(out + large * (size_t)serial, bytes, job.rank, next, serial);
    MPI_Isend(out + large * (size_t)serial, (int)bytes, MPI_BYTE, next, serial, job.comm, &requests[serial]);
  }
  MPI_Isend(NULL, 0, MPI_BYTE, next, kUnexpected, job.comm, &requests[kUnexpected]);
  MPI_Recv(NULL, 0, MPI_BYTE, previous, kUnexpected, job.comm, MPI_STATUS_IGNORE);
  for (int serial = kUnexpected - 1; serial >= 0; --serial) {
    const size_t bytes = serial % 10 == 9 ? large : (size_t)serial * 7;
    MPI_Status status;
    MPI_Recv(in, (int)large, MPI_BYTE, previous, serial, job.comm, &status);
    expect_status(&status, previous, serial, bytes);
    expect_bytes(in, bytes, previous, job.rank, serial);
  }
  MPI_Waitall(kUnexpected + 1, requests, MPI_STATUSES_IGNORE);
  free(in);
  free(out);
}

// A synchronous send may not end before its receive has begun.
static void synchronous(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  char* out = allocate(kSizeMax);
  char* in = allocate(kSizeMax);
  for (int i = 0; i < kSizeCount; ++i) {
    MPI_Request request;
    int done = 0;
    fill(out, kSizes[i], job.rank, next, i);
    MPI_Issend(out, (int)kSizes[i], MPI_BYTE, next, kTag, job.comm, &request);
    for (int poll = 0; poll < 100; ++poll) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    expect_equal("a synchronous send without its receive", done, 0);
    MPI_Barrier(job.comm);
    MPI_Recv(in, kSizeMax, MPI_BYTE, previous, kTag, job.comm, MPI_STATUS_IGNORE);
    expect_bytes(in, kSizes[i], previous, job.rank, i);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(job.comm);
  }
  free(out);
  free(in);
}

static void persistent(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  const size_t bytes = 5000;
  char* out = allocate(bytes);
  char* in = allocate(bytes);
  MPI_Request requests[2];
  MPI_Recv_init(in, (int)bytes, MPI_BYTE, previous, kTag, job.comm, &requests[0]);
  MPI_Send_init(out, (int)bytes, MPI_BYTE, next, kTag, job.comm, &requests[1]);
  for (int serial = 0; serial < 50 * job.rounds; ++serial) {
    fill(out, bytes, job.rank, next, serial);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect_bytes(in, bytes, previous, job.rank, serial);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(out);
  free(in);
}

// Every second column of a matrix: what arrives must lie in the holes, the rest must stay untouched.
static void strided(void) {
  enum { kRows = 2000, kColumns = 8 };
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  uint64_t* out = allocate(sizeof(uint64_t) * kRows * kColumns);
  uint64_t* in = allocate(sizeof(uint64_t) * kRows * kColumns);
  uint64_t* expected = allocate(sizeof(uint64_t) * kRows * kColumns);
  MPI_Datatype column;
  MPI_Type_vector(kRows, 1, kColumns, MPI_UINT64_T, &column);
  MPI_Type_commit(&column);
  fill(out, sizeof(uint64_t) * kRows * kColumns, job.rank, next, 1);
  fill(expected, sizeof(uint64_t) * kRows * kColumns, previous, job.rank, 1);
  memset(in, 0, sizeof(uint64_t) * kRows * kColumns);
  for (int at = 0; at < kColumns; at += 2) {
    MPI_Sendrecv(out + at, 1, column, next, at, in + at, 1, column, previous, at, job.comm,
                 MPI_STATUS_IGNORE);
  }
  for (int at = 0; at < kRows * kColumns; ++at) {
    const uint64_t wanted = at % 2 ? 0 : expected[at];
    expect_equal("a strided word", (long long)in[at], (long long)wanted);
  }
  MPI_Type_free(&column);
  free(out);
  free(in);
  free(expected);
}

const struct test kPointToPointTests[] = {{"ring", ring},
                                          {"pairs", pairs},
                                          {"storm", storm},
                                          {"unexpected", unexpected},
                                          {"synchronous", synchronous},
                                          {"persistent", persistent},
                                          {"strided", strided},
                                          {NULL, NULL}};
