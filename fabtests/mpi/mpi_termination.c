// mpi_termination: jobs that end abnormally. The first argument says how:
//   abort     the last rank calls MPI_Abort while all others wait for it
//   leave     the last rank exits with status 7 and without MPI_Finalize
//   signal    the last rank is killed while all others send to it
//   forever   all ranks exchange messages until the launcher is interrupted
//   finalize  every rank finishes while its last buffered messages are still on their way
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 60000, kLast = 40 };

static char out[kBytes], in[kBytes];

static void exchange_forever(void) {
  const int next = (job.rank + 1) % job.size, previous = (job.rank + job.size - 1) % job.size;
  for (int serial = 0;; ++serial) {
    fill(out, kBytes, job.rank, next, serial);
    MPI_Sendrecv(out, kBytes, MPI_BYTE, next, 1, in, kBytes, MPI_BYTE, previous, 1, job.comm,
                 MPI_STATUS_IGNORE);
    expect_bytes(in, kBytes, previous, job.rank, serial);
    if (serial == 20 && job.rank == 0) {
      puts("under way");
      fflush(stdout);
    }
  }
}

// All sends have returned, no receive has: the library and the provider owe everything at MPI_Finalize.
static void finish_in_flight(void) {
  const int next = (job.rank + 1) % job.size, previous = (job.rank + job.size - 1) % job.size;
  const int bytes = kLast * (kBytes + MPI_BSEND_OVERHEAD);
  char* buffer = allocate((size_t)bytes);
  MPI_Buffer_attach(buffer, bytes);
  for (int serial = 0; serial < kLast; ++serial) {
    fill(out, kBytes, job.rank, next, serial);
    MPI_Bsend(out, kBytes, MPI_BYTE, next, serial, job.comm);
  }
  if (job.rank % 2) usleep(300000);  // half of the ranks are late, on purpose
  for (int serial = kLast - 1; serial >= 0; --serial) {
    MPI_Recv(in, kBytes, MPI_BYTE, previous, serial, job.comm, MPI_STATUS_IGNORE);
    expect_bytes(in, kBytes, previous, job.rank, serial);
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  job.comm = MPI_COMM_WORLD;
  job.test = how;
  MPI_Comm_rank(job.comm, &job.rank);
  MPI_Comm_size(job.comm, &job.size);
  const int last = job.rank == job.size - 1;
  MPI_Barrier(job.comm);
  if (strcmp(how, "abort") == 0 && last) MPI_Abort(job.comm, 5);
  if (strcmp(how, "leave") == 0 && last) _exit(7);
  if (strcmp(how, "signal") == 0 && last) raise(SIGKILL);
  if (strcmp(how, "finalize") == 0) {
    finish_in_flight();
  } else {
    exchange_forever();
  }
  MPI_Finalize();
  if (job.rank == 0)
    printf("PASS mpi_termination: %llu bytes compared by the first rank\n", compared_bytes());
  return 0;
}
