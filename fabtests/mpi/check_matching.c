// Matching: wildcards, order, probes, cancellation, truncation, communicators.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kPerSender = 64, kBytesMax = 40000 };

static size_t size_of(int from, int serial) {
  static const size_t sizes[] = {8, 0, 1024, 17000, 64, 33000, 4000, 1};
  return sizes[(from + serial) % 8];
}

// All ranks but `root` send kPerSender messages to it, tags 0 1 0 1...
static void send_to(int root, MPI_Request* requests, char** buffers) {
  for (int serial = 0; serial < kPerSender; ++serial) {
    const size_t bytes = size_of(job.rank, serial);
    buffers[serial] = allocate(bytes);
    fill(buffers[serial], bytes, job.rank, root, serial);
    MPI_Isend(buffers[serial], (int)bytes, MPI_BYTE, root, serial % 2, job.comm, &requests[serial]);
  }
}

static void finish_sends(MPI_Request* requests, char** buffers) {
  MPI_Waitall(kPerSender, requests, MPI_STATUSES_IGNORE);
  for (int serial = 0; serial < kPerSender; ++serial) free(buffers[serial]);
}

// How one message is taken in; all must give the same bytes in the same order per sender and tag.
typedef void (*take)(char* in, MPI_Status* status);

static void take_any(char* in, MPI_Status* status) {
  MPI_Recv(in, kBytesMax, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, job.comm, status);
}

static void take_probed(char* in, MPI_Status* status) {
  int count = 0;
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.comm, status);
  MPI_Get_count(status, MPI_BYTE, &count);
  MPI_Recv(in, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, job.comm, status);
}

static void take_polled(char* in, MPI_Status* status) {
  int found = 0;
  for (int tag = 0; !found; tag ^= 1) MPI_Iprobe(MPI_ANY_SOURCE, tag, job.comm, &found, status);
  MPI_Recv(in, kBytesMax, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, job.comm, status);
}

static void take_claimed(char* in, MPI_Status* status) {
  MPI_Message message;
  int count = 0;
  MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.comm, &message, status);
  MPI_Get_count(status, MPI_BYTE, &count);
  MPI_Mrecv(in, count, MPI_BYTE, &message, status);
}

static void take_claimed_polled(char* in, MPI_Status* status) {
  MPI_Message message;
  int found = 0;
  while (!found) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.comm, &found, &message, status);
  MPI_Mrecv(in, kBytesMax, MPI_BYTE, &message, status);
}

static void collect(int root, take how) {
  char* in = allocate(kBytesMax);
  int* next = allocate(sizeof(int) * 2 * (size_t)job.size);
  for (int i = 0; i < job.size; ++i) {
    next[2 * i] = 0;
    next[2 * i + 1] = 1;
  }
  for (int left = (job.size - 1) * kPerSender; left > 0; --left) {
    MPI_Status status;
    how(in, &status);
    const int from = status.MPI_SOURCE;
    const int tag = status.MPI_TAG;
    expect_equal("a known tag", tag == 0 || tag == 1, 1);
    const int serial = next[2 * from + tag];
    next[2 * from + tag] += 2;
    expect_status(&status, from, tag, size_of(from, serial));
    expect_bytes(in, size_of(from, serial), from, root, serial);
  }
  free(in);
  free(next);
}

static void many_to_one(take how) {
  MPI_Request requests[kPerSender];
  char* buffers[kPerSender];
  for (int root = 0; root < job.size; ++root) {
    if (job.rank == root) {
      collect(root, how);
    } else {
      send_to(root, requests, buffers);
      finish_sends(requests, buffers);
    }
    MPI_Barrier(job.comm);
  }
}

static void wildcards(void) { many_to_one(take_any); }
static void probe(void) { many_to_one(take_probed); }
static void poll_probe(void) { many_to_one(take_polled); }
static void claim(void) { many_to_one(take_claimed); }
static void poll_claim(void) { many_to_one(take_claimed_polled); }

// A receive taken back must not swallow the message that comes afterwards.
static void cancel(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  for (int serial = 0; serial < 20; ++serial) {
    char in[64], lost[64], out[64];
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0;
    MPI_Irecv(lost, sizeof lost, MPI_BYTE, previous, 99, job.comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect_equal("a receive without a message, taken back", cancelled, 1);
    MPI_Barrier(job.comm);
    fill(out, sizeof out, job.rank, next, serial);
    MPI_Sendrecv(out, sizeof out, MPI_BYTE, next, 99, in, sizeof in, MPI_BYTE, previous, 99, job.comm,
                 MPI_STATUS_IGNORE);
    expect_bytes(in, sizeof in, previous, job.rank, serial);
  }
}

// A message longer than its buffer is an error of that receive and of nothing else. (Open MPI 4.1.4 without a
// matching transport, pml ob1, writes behind the buffer of a large truncated message and fails here: --skip
// it.)
static void truncation(void) {
  static const size_t sizes[] = {64, 5000, 100000, 300000};
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  char* out = allocate(kSizeMax);
  char* in = allocate(kSizeMax);
  MPI_Comm_set_errhandler(job.comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < 4; ++i) {
    MPI_Request request;
    int class = MPI_SUCCESS;
    fill(out, sizes[i], job.rank, next, i);
    MPI_Isend(out, (int)sizes[i], MPI_BYTE, next, 5, job.comm, &request);
    memset(in, 0x5a, sizes[i]);
    const int code = MPI_Recv(in, (int)sizes[i] / 2, MPI_BYTE, previous, 5, job.comm, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    expect_equal("the error class of a truncated receive", class, MPI_ERR_TRUNCATE);
    for (size_t at = sizes[i] / 2; at < sizes[i]; ++at)
      expect_equal("a byte behind the buffer", in[at], 0x5a);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, (int)sizes[i], MPI_BYTE, next, 6, in, (int)sizes[i], MPI_BYTE, previous, 6, job.comm,
                 MPI_STATUS_IGNORE);
    expect_bytes(in, sizes[i], previous, job.rank, i);
  }
  MPI_Comm_set_errhandler(job.comm, MPI_ERRORS_ARE_FATAL);
  free(out);
  free(in);
}

// The same tag in two communicators never mixes.
static void communicators(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  MPI_Comm one, two;
  MPI_Comm_dup(job.comm, &one);
  MPI_Comm_split(job.comm, 0, job.rank, &two);
  for (int i = 0; i < kSizeCount - 2; ++i) {
    const size_t bytes = kSizes[i];
    char* buffers[4];
    MPI_Request requests[2];
    for (int b = 0; b < 4; ++b) buffers[b] = allocate(bytes);
    fill(buffers[0], bytes, job.rank, next, 1000 + i);
    fill(buffers[1], bytes, job.rank, next, 2000 + i);
    MPI_Isend(buffers[0], (int)bytes, MPI_BYTE, next, 3, one, &requests[0]);
    MPI_Isend(buffers[1], (int)bytes, MPI_BYTE, next, 3, two, &requests[1]);
    MPI_Recv(buffers[3], (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, two, MPI_STATUS_IGNORE);
    MPI_Recv(buffers[2], (int)bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, one, MPI_STATUS_IGNORE);
    expect_bytes(buffers[2], bytes, previous, job.rank, 1000 + i);
    expect_bytes(buffers[3], bytes, previous, job.rank, 2000 + i);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int b = 0; b < 4; ++b) free(buffers[b]);
  }
  MPI_Comm_free(&one);
  MPI_Comm_free(&two);
}

const struct test kMatchingTests[] = {{"wildcards", wildcards},
                                      {"probe", probe},
                                      {"poll_probe", poll_probe},
                                      {"claim", claim},
                                      {"poll_claim", poll_claim},
                                      {"cancel", cancel},
                                      {"truncation", truncation},
                                      {"communicators", communicators},
                                      {NULL, NULL}};
