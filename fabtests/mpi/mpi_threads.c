// mpi_threads: many threads of each rank send and receive at once (MPI_THREAD_MULTIPLE), each thread with its
// peer of the same number on every other rank, some by tag in one communicator, some in communicators of
// their own; others make windows of time for collective operations. Every byte is compared.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kThreadsMax = 32, kLargest = 200000 };

static const size_t kThreadSizes[] = {0, 8, 700, 5000, 17000, 40000, kLargest};
enum { kThreadSizeCount = sizeof kThreadSizes / sizeof kThreadSizes[0] };

enum { kBytes = 6000 };  // of each thread of each rank, in every window

static int threads = 8, rounds = 20;
static MPI_Comm own[kThreadsMax];
static MPI_Win window = MPI_WIN_NULL;
static char* memory;

static void on_alarm(int number) {
  (void)number;
  static const char text[] = "FAIL: mpi_threads hangs\n";
  ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
  (void)ignored;
  _exit(3);
}

static void exchange(int thread, int round, int distance, char* out, char* in) {
  const int to = (job.rank + distance) % job.size, from = (job.rank + job.size - distance) % job.size;
  const size_t bytes = kThreadSizes[(round + thread) % kThreadSizeCount];
  const int serial = thread * 1000 + round;
  MPI_Comm comm = thread % 2 ? own[thread] : job.comm;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(in, kLargest, MPI_BYTE, from, serial, comm, &requests[0]);
  fill(out, bytes, job.rank, to, serial);
  MPI_Isend(out, (int)bytes, MPI_BYTE, to, serial, comm, &requests[1]);
  if (round % 3 == 0) {
    int done = 0;
    while (!done) MPI_Test(&requests[0], &done, &status);
  } else {
    MPI_Wait(&requests[0], &status);
  }
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  expect_status(&status, from, serial, bytes);
  expect_bytes(in, bytes, from, job.rank, serial);
}

// What comes is claimed first: between that and the receive no other thread can take it.
static void claim(int thread, int round, char* out, char* in) {
  const int next = (job.rank + 1) % job.size, previous = (job.rank + job.size - 1) % job.size;
  const size_t bytes = kThreadSizes[(round + thread) % kThreadSizeCount];
  const int tag = 100000 + thread;
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  fill(out, bytes, job.rank, next, tag + round);
  MPI_Isend(out, (int)bytes, MPI_BYTE, next, tag, job.comm, &request);
  MPI_Mprobe(MPI_ANY_SOURCE, tag, job.comm, &message, &status);
  MPI_Mrecv(in, kLargest, MPI_BYTE, &message, &status);
  expect_status(&status, previous, tag, bytes);
  expect_bytes(in, bytes, previous, job.rank, tag + round);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static MPI_Aint offset_of_thread(int rank, int thread) {
  return ((MPI_Aint)rank * threads + thread) * kBytes;
}

// Written to every rank, flushed and read back; the areas of two threads never overlap.
static void write_into_windows(int thread, int round, char* out, char* in) {
  const int bytes = kBytes >> (round % 4);
  for (int peer = 0; peer < job.size; ++peer) {
    fill(out, (size_t)bytes, job.rank, peer, round);
    MPI_Put(out, bytes, MPI_BYTE, peer, offset_of_thread(job.rank, thread), bytes, MPI_BYTE, window);
    MPI_Win_flush(peer, window);
    MPI_Get(in, bytes, MPI_BYTE, peer, offset_of_thread(job.rank, thread), bytes, MPI_BYTE, window);
    MPI_Win_flush(peer, window);
    expect_bytes(in, (size_t)bytes, job.rank, peer, round);
  }
}

static void* work(void* argument) {
  const int thread = (int)(intptr_t)argument;
  char *out = allocate(kLargest), *in = allocate(kLargest);
  for (int round = 0; round < rounds; ++round) {
    for (int distance = 0; distance < job.size; ++distance) exchange(thread, round, distance, out, in);
    if (thread % 4 == 2) claim(thread, round, out, in);
    if (window != MPI_WIN_NULL) write_into_windows(thread, round, out, in);
    if (thread % 4 == 3) {  // a communicator of its own may be used for everything
      int sum = 0;
      MPI_Allreduce(&job.rank, &sum, 1, MPI_INT, MPI_SUM, own[thread]);
      expect_equal("a sum made by a thread", sum, job.size * (job.size - 1) / 2);
    }
  }
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  if (argc > 1) threads = atoi(argv[1]);
  if (argc > 2) rounds = atoi(argv[2]);
  if (threads < 1 || threads > kThreadsMax || rounds < 1) {
    fprintf(stderr, "usage: mpi_threads [threads, 1 to %d [rounds [windows]]]\n", kThreadsMax);
    return 2;
  }
  job.test = "threads";
  signal(SIGALRM, on_alarm);
  alarm(150);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &job.comm);
  MPI_Comm_rank(job.comm, &job.rank);
  MPI_Comm_size(job.comm, &job.size);
  if (provided < MPI_THREAD_MULTIPLE) {
    if (job.rank == 0) printf("FAIL: this library grants no MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 1;
  }
  for (int i = 0; i < threads; ++i) MPI_Comm_dup(job.comm, &own[i]);
  if (argc > 3 && strcmp(argv[3], "windows") == 0) {
    MPI_Win_allocate(offset_of_thread(job.size, 0), 1, MPI_INFO_NULL, job.comm, &memory, &window);
    MPI_Win_lock_all(0, window);
  }
  pthread_t started[kThreadsMax];
  for (int i = 0; i < threads; ++i) pthread_create(&started[i], NULL, work, (void*)(intptr_t)i);
  for (int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
  if (window != MPI_WIN_NULL) {
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
  }
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&own[i]);
  unsigned long long mine = compared_bytes(), all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, job.comm);
  MPI_Comm_free(&job.comm);
  MPI_Finalize();
  if (job.rank == 0)
    printf("PASS mpi_threads: %d threads, %d ranks, %llu bytes compared\n", threads, job.size, all);
  return 0;
}
