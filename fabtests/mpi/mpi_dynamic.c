// mpi_dynamic: processes that find each other after the start. `mpi_dynamic spawn` starts a copy of itself
// and talks to it; `mpi_dynamic connect` splits the job in two, one half opens a port and the other connects
// to it. Each rank says when it is `connected` and when it has `talked`, so that it is known where a job that
// fails got stuck.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 50000, kChildren = 2 };

static void on_alarm(int number) {
  (void)number;
  static const char text[] = "FAIL: mpi_dynamic hangs\n";
  ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
  (void)ignored;
  _exit(3);
}

static void say(const char* word) {
  puts(word);
  fflush(stdout);
}

// Every rank of one side exchanges with every rank of the other; then both sides agree on a sum.
static void talk(MPI_Comm between, int side) {
  int rank = 0, size = 0, others = 0;
  say("connected");
  MPI_Comm_rank(between, &rank);
  MPI_Comm_size(between, &size);
  MPI_Comm_remote_size(between, &others);
  char *out = allocate(kBytes), *in = allocate(kBytes);
  for (int peer = 0; peer < others; ++peer) {
    MPI_Request request;
    fill(out, kBytes, rank + 100 * side, peer, 1);
    MPI_Isend(out, kBytes, MPI_BYTE, peer, 1, between, &request);
    MPI_Recv(in, kBytes, MPI_BYTE, peer, 1, between, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_bytes(in, kBytes, peer + 100 * !side, rank, 1);
  }
  MPI_Comm both;
  int one = 1, sum = 0;
  MPI_Intercomm_merge(between, side, &both);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
  expect_equal("members of both sides", sum, size + others);
  MPI_Comm_free(&both);
  say("talked");
  free(out);
  free(in);
}

static void spawn(char* program) {
  MPI_Comm children;
  MPI_Comm_spawn(program, MPI_ARGV_NULL, kChildren, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                 MPI_ERRCODES_IGNORE);
  talk(children, 0);
  MPI_Comm_disconnect(&children);
}

static void connect_halves(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm half, between;
  const int serves = job.rank < (job.size + 1) / 2;
  MPI_Comm_split(MPI_COMM_WORLD, serves, job.rank, &half);
  if (job.rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (serves) {
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
  } else {
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
  }
  talk(between, serves);
  MPI_Comm_disconnect(&between);
  if (job.rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  MPI_Comm parent;
  job.test = "dynamic";
  signal(SIGALRM, on_alarm);
  alarm(60);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.size);
  job.comm = MPI_COMM_WORLD;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    talk(parent, 1);
    MPI_Comm_disconnect(&parent);
  } else if (argc > 1 && strcmp(argv[1], "connect") == 0) {
    connect_halves();
  } else {
    spawn(argv[0]);
  }
  unsigned long long mine = compared_bytes(), all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  if (job.rank == 0 && argc > 1) printf("PASS mpi_dynamic %s: %llu bytes compared\n", argv[1], all);
  return 0;
}
