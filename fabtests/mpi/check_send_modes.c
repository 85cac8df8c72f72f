// The modes of sending: buffered, synchronous, ready; at once, later, again and again; to MPI_PROC_NULL and
// to oneself.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kTag = 21, kModes = 4 };

typedef int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*start_send)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

static const send kSend[kModes] = {MPI_Send, MPI_Ssend, MPI_Rsend, MPI_Bsend};
static const start_send kStart[kModes] = {MPI_Isend, MPI_Issend, MPI_Irsend, MPI_Ibsend};
static const start_send kPrepare[kModes] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init, MPI_Bsend_init};

// Places where this provider or the libraries above it change their method, and their neighbours.
static const size_t kThresholds[] = {64, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144};
enum { kThresholdCount = sizeof kThresholds / sizeof kThresholds[0], kLargest = 262144 + 1 };

static size_t near_threshold(int index) { return kThresholds[index / 3] + (size_t)(index % 3) - 1; }

struct ends {
  int next, previous;
  char *out, *in, *attached;
};

static struct ends begin(void) {
  struct ends ends = {.next = (job.rank + 1) % job.size,
                      .previous = (job.rank + job.size - 1) % job.size,
                      .out = allocate(kLargest),
                      .in = allocate(kLargest),
                      .attached = allocate(2 * (kLargest + MPI_BSEND_OVERHEAD))};
  MPI_Buffer_attach(ends.attached, 2 * (kLargest + MPI_BSEND_OVERHEAD));
  return ends;
}

static void end(struct ends* ends) {
  void* attached = NULL;
  int bytes = 0;
  MPI_Buffer_detach(&attached, &bytes);
  expect_equal("the buffer given back", attached == ends->attached, 1);
  free(ends->out);
  free(ends->in);
  free(ends->attached);
}

// Every mode, blocking: the receive is posted before, as a ready send wants it.
static void modes(void) {
  struct ends ends = begin();
  for (int i = 0; i < 3 * kThresholdCount; ++i) {
    const size_t bytes = near_threshold(i);
    const int mode = i % kModes;
    MPI_Request request;
    MPI_Irecv(ends.in, kLargest, MPI_BYTE, ends.previous, kTag, job.comm, &request);
    MPI_Barrier(job.comm);
    fill(ends.out, bytes, job.rank, ends.next, i);
    kSend[mode](ends.out, (int)bytes, MPI_BYTE, ends.next, kTag, job.comm);
    if (mode == 3) memset(ends.out, 0, bytes);  // a buffered send has its own copy
    MPI_Status status;
    MPI_Wait(&request, &status);
    expect_status(&status, ends.previous, kTag, bytes);
    expect_bytes(ends.in, bytes, ends.previous, job.rank, i);
  }
  end(&ends);
}

// Every mode and every size, started and then waited for in every way there is.
static void start_modes(void) {
  struct ends ends = begin();
  for (int i = 0; i < 3 * kThresholdCount * kModes; ++i) {
    const size_t bytes = near_threshold(i / kModes);
    const int mode = i % kModes;
    MPI_Request requests[2];
    int done = 0, index = -1;
    MPI_Irecv(ends.in, kLargest, MPI_BYTE, ends.previous, kTag, job.comm, &requests[0]);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, ends.previous, 9, NULL, 0, MPI_BYTE, ends.next, 9, job.comm,
                 MPI_STATUS_IGNORE);  // now my neighbour's receive is posted
    fill(ends.out, bytes, job.rank, ends.next, i);
    kStart[mode](ends.out, (int)bytes, MPI_BYTE, ends.next, kTag, job.comm, &requests[1]);
    switch (i % 4) {
      case 0: MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); break;
      case 1:
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1 - index], MPI_STATUS_IGNORE);
        break;
      case 2:
        while (!done) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
        break;
      default:
        for (int left = 2; left > 0;) {
          int indices[2], finished = 0;
          MPI_Testsome(2, requests, &finished, indices, MPI_STATUSES_IGNORE);
          left -= finished;
        }
    }
    expect_bytes(ends.in, bytes, ends.previous, job.rank, i);
  }
  end(&ends);
}

static void again_and_again(int mode) {
  struct ends ends = begin();
  static const size_t sizes[] = {0, 100, 16384, 70000};
  for (int s = 0; s < 4; ++s) {
    MPI_Request requests[2];
    MPI_Recv_init(ends.in, (int)sizes[s], MPI_BYTE, ends.previous, kTag, job.comm, &requests[0]);
    kPrepare[mode](ends.out, (int)sizes[s], MPI_BYTE, ends.next, kTag, job.comm, &requests[1]);
    for (int again = 0; again < 5; ++again) {
      fill(ends.out, sizes[s], job.rank, ends.next, again);
      MPI_Start(&requests[0]);
      MPI_Sendrecv(NULL, 0, MPI_BYTE, ends.previous, 9, NULL, 0, MPI_BYTE, ends.next, 9, job.comm,
                   MPI_STATUS_IGNORE);
      MPI_Start(&requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      expect_bytes(ends.in, sizes[s], ends.previous, job.rank, again);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
  }
  end(&ends);
}

static void persistent_modes(void) {
  for (int mode = 0; mode < 3; ++mode) again_and_again(mode);
}

// Apart from the others: Open MPI 4.1.4 sends the bytes of the first start for ever, over TCP as well.
static void persistent_buffered(void) { again_and_again(3); }

static void replace(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  char* buffer = allocate(kLargest);
  for (int i = 0; i < 3 * kThresholdCount; ++i) {
    MPI_Status status;
    fill(buffer, near_threshold(i), job.rank, next, i);
    MPI_Sendrecv_replace(buffer, (int)near_threshold(i), MPI_BYTE, next, kTag, previous, kTag, job.comm,
                         &status);
    expect_status(&status, previous, kTag, near_threshold(i));
    expect_bytes(buffer, near_threshold(i), previous, job.rank, i);
  }
  free(buffer);
}

static void proc_null_and_self(void) {
  char in[512], out[512] = {0};
  MPI_Status status;
  MPI_Request requests[2];
  MPI_Sendrecv(out, sizeof out, MPI_BYTE, MPI_PROC_NULL, 1, in, sizeof in, MPI_BYTE, MPI_PROC_NULL, 1,
               job.comm, &status);
  expect_equal("the source of nothing", status.MPI_SOURCE, MPI_PROC_NULL);
  for (int serial = 0; serial < 20; ++serial) {
    fill(out, sizeof out, job.rank, job.rank, serial);
    MPI_Isend(out, sizeof out, MPI_BYTE, job.rank, kTag, job.comm, &requests[0]);
    MPI_Irecv(in, sizeof in, MPI_BYTE, serial % 2 ? job.rank : MPI_ANY_SOURCE, kTag, job.comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect_bytes(in, sizeof in, job.rank, job.rank, serial);
  }
}

const struct test kSendModeTests[] = {{"modes", modes},
                                      {"start_modes", start_modes},
                                      {"persistent_modes", persistent_modes},
                                      {"persistent_buffered", persistent_buffered},
                                      {"replace", replace},
                                      {"proc_null_and_self", proc_null_and_self},
                                      {NULL, NULL}};
