// mpi_large: messages and windows beyond two gigabytes, between the first rank and the last. Needs 5 GB of
// memory.
//
// MPI counts with int, so the elements are large. What is compared is a word in each 4 KB and both ends:
// writing more would test the memory, not the network.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kElement = 1 << 20, kElements = 2200, kStep = 4096 };

static const size_t kBytes = (size_t)kElement * kElements;

static void on_alarm(int number) {
  (void)number;
  static const char text[] = "FAIL: mpi_large hangs\n";
  ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
  (void)ignored;
  _exit(3);
}

static void mark(char* buffer, uint64_t salt) {
  for (size_t at = 0; at < kBytes; at += kStep) {
    const uint64_t word = at * 0x9e3779b97f4a7c15u + salt;
    memcpy(buffer + at, &word, sizeof word);
  }
  buffer[kBytes - 1] = (char)salt;
}

static void expect_marks(const char* buffer, uint64_t salt) {
  for (size_t at = 0; at < kBytes; at += kStep) {
    const uint64_t word = at * 0x9e3779b97f4a7c15u + salt;
    if (memcmp(buffer + at, &word, sizeof word) != 0)
      expect_equal("a word of a large message, at", (long long)at, -1);
  }
  expect_equal("the last byte of a large message", buffer[kBytes - 1], (char)salt);
}

static void message(MPI_Datatype element, char* buffer, int last) {
  MPI_Status status;
  MPI_Count elements = 0;
  if (job.rank == 0) {
    mark(buffer, 1);
    MPI_Send(buffer, kElements, element, last, 1, job.comm);
  } else if (job.rank == last) {
    MPI_Recv(buffer, kElements, element, 0, 1, job.comm, &status);
    MPI_Get_elements_x(&status, MPI_BYTE, &elements);
    expect_equal("the length of a large message", elements, (long long)kBytes);
    expect_marks(buffer, 1);
  }
}

// Written to the last rank and read back.
static void window(MPI_Datatype element, char* buffer, int last) {
  MPI_Win win;
  MPI_Win_create(buffer, job.rank == last ? (MPI_Aint)kBytes : 0, 1, MPI_INFO_NULL, job.comm, &win);
  MPI_Win_fence(0, win);
  if (job.rank == 0) {
    mark(buffer, 2);
    MPI_Put(buffer, kElements, element, last, 0, kElements, element, win);
  }
  MPI_Win_fence(0, win);
  if (job.rank == last) expect_marks(buffer, 2);
  if (job.rank == 0) {
    memset(buffer, 0, kBytes);
    MPI_Get(buffer, kElements, element, last, 0, kElements, element, win);
  }
  MPI_Win_fence(0, win);
  if (job.rank == 0) expect_marks(buffer, 2);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  job.test = "large";
  signal(SIGALRM, on_alarm);
  alarm(600);
  MPI_Init(&argc, &argv);
  job.comm = MPI_COMM_WORLD;
  MPI_Comm_rank(job.comm, &job.rank);
  MPI_Comm_size(job.comm, &job.size);
  MPI_Datatype element;
  MPI_Type_contiguous(kElement, MPI_BYTE, &element);
  MPI_Type_commit(&element);
  const int last = job.size - 1;
  char* buffer = allocate(job.rank == 0 || job.rank == last ? kBytes : 0);
  const double begun = MPI_Wtime();
  message(element, buffer, last);
  const double between = MPI_Wtime();
  if (argc > 1 && strcmp(argv[1], "windows") == 0) window(element, buffer, last);
  MPI_Barrier(job.comm);
  if (job.rank == 0) {
    printf("PASS mpi_large: %zu bytes compared, message %.1f s, window %.1f s\n", kBytes, between - begun,
           MPI_Wtime() - between);
  }
  MPI_Type_free(&element);
  free(buffer);
  MPI_Finalize();
  return 0;
}
