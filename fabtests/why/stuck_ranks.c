// stuck_ranks: jobs that make no progress, for cluster-why. Each rank first prints its number and its
// process. The argument says what happens then:
//   forever   all ranks reduce again and again: the test stops one of them
//   finalize  all ranks reduce for some seconds, then go to MPI_Finalize: meanwhile the test cuts the
//             launcher's rail
//   receive   rank 0 sends a message to the last rank, which posts no receive for it; all go to a barrier
//   sleep     the last rank sleeps, all others are in a barrier
//   windows   the first and the last rank have locked one window each, and wait for the lock of the other one
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { kLarge = 1 << 20, kTag = 5, kHolder = 1 };

static char large[kLarge];

// Until the seconds have passed for one rank.
static void reduce_for(double seconds) {
  const double begun = MPI_Wtime();
  for (int go_on = 1; go_on; usleep(1000)) {
    const int wish = MPI_Wtime() - begun < seconds;
    MPI_Allreduce(&wish, &go_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  }
}

static void lock_two_windows(int first) {
  MPI_Win windows[2];
  void* memory;
  for (int i = 0; i < 2; ++i) MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &windows[i]);
  if (first >= 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kHolder, 0, windows[first]);
    MPI_Win_flush(kHolder, windows[first]);  // Open MPI awaits the lock only here
    sleep(1);                                // until the other one has its lock, too
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kHolder, 0, windows[1 - first]);
    MPI_Win_flush(kHolder, windows[1 - first]);
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int last = rank == size - 1;
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d process %d\n", rank, (int)getpid());
  fflush(stdout);
  if (strcmp(how, "forever") == 0) reduce_for(1e9);
  if (strcmp(how, "finalize") == 0) reduce_for(3);
  if (strcmp(how, "receive") == 0 && rank == 0)
    MPI_Send(large, kLarge, MPI_BYTE, size - 1, kTag, MPI_COMM_WORLD);
  if (strcmp(how, "sleep") == 0 && last) sleep(1000);
  if (strcmp(how, "windows") == 0) lock_two_windows(rank == 0 ? 0 : last ? 1 : -1);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
