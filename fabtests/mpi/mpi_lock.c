// mpi_lock: an MCS lock (Mellor-Crummey and Scott, 1991) over an MPI window, all ranks in turns.
//
//   mpi_lock flushed|unflushed ROUNDS SECONDS
//
// A rank that wants the lock puts itself behind the last one (MPI_Fetch_and_op at rank 0) and looks at its own
// word until the rank before it changes that. `flushed` completes each operation before the next depends on it,
// as MPI demands. `unflushed` lets the operations on a rank's own words stand without a flush, as programs that
// were written over one transport do: it may stand still, and shows how often. What the lock protects are two
// numbers at rank 0 that only its owner reads and writes. Prints, the second line if no turn was lost,
//
//   acquire_us <ranks> <mean>
//   PASS mpi_lock
//
// or, when a rank has had no turn for so many seconds, "STANDS STILL mpi_lock", and ends the job with status 3.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kTail, kNext, kBlocked, kProtected, kWords = kProtected + 2, kNoRank = -1, kStandsStill = 3 };

static int rank, size, flushed, seconds;
static MPI_Win win;
static volatile int* words;

static void stand_still(int signal_number) {
  (void)signal_number;
  static const char text[] = "STANDS STILL mpi_lock\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(1);
  _exit(kStandsStill);
}

static void set(int owner, int place, int value) {
  MPI_Accumulate(&value, 1, MPI_INT, owner, place, 1, MPI_INT, MPI_REPLACE, win);
  if (flushed || owner != rank) MPI_Win_flush(owner, win);
}

static int swap(int owner, int place, int value) {
  int before = 0;
  MPI_Fetch_and_op(&value, &before, MPI_INT, owner, place, MPI_REPLACE, win);
  MPI_Win_flush(owner, win);
  return before;
}

static int own(int place) {
  MPI_Win_sync(win);
  return words[place];
}

// Until the word is no longer `value`; the library is called now and then.
static void wait_while(int place, int value) {
  const struct timespec pause = {0, 20000};
  for (int look = 1; own(place) == value; ++look) {
    if (look % 16 == 0) nanosleep(&pause, NULL);
    if (look % 4 == 0) MPI_Win_flush(rank, win);
  }
}

static void acquire(void) {
  set(rank, kNext, kNoRank);
  set(rank, kBlocked, 1);
  const int before = swap(0, kTail, rank);
  if (before == kNoRank) return;
  set(before, kNext, rank);
  wait_while(kBlocked, 1);
}

static void release(void) {
  if (own(kNext) == kNoRank) {
    const int none = kNoRank;
    int before = kNoRank;
    MPI_Compare_and_swap(&none, &rank, &before, MPI_INT, 0, kTail, win);
    MPI_Win_flush(0, win);
    if (before == rank) return;
    wait_while(kNext, kNoRank);
  }
  set(own(kNext), kBlocked, 0);
}

// What only the owner of the lock does.
static void count(void) {
  int numbers[2] = {0, 0};
  MPI_Get(numbers, 2, MPI_INT, 0, kProtected, 2, MPI_INT, win);
  MPI_Win_flush(0, win);
  if (numbers[0] != numbers[1]) {
    printf("FAIL mpi_lock: rank %d found %d and %d, so two ranks had the lock\n", rank, numbers[0],
           numbers[1]);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < 2; ++i) {
    ++numbers[i];
    MPI_Put(&numbers[i], 1, MPI_INT, 0, kProtected + i, 1, MPI_INT, win);
    MPI_Win_flush(0, win);
  }
}

static double run(long rounds) {
  const double start = MPI_Wtime();
  for (long round = 0; round < rounds; ++round) {
    alarm((unsigned)seconds);
    acquire();
    count();
    release();
  }
  return MPI_Wtime() - start;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const long rounds = argc == 4 ? atol(argv[2]) : 0;
  if (rounds <= 0 || (strcmp(argv[1], "flushed") != 0 && strcmp(argv[1], "unflushed") != 0)) {
    if (rank == 0) fprintf(stderr, "usage: mpirun ... mpi_lock flushed|unflushed ROUNDS SECONDS\n");
    MPI_Finalize();
    return 2;
  }
  flushed = strcmp(argv[1], "flushed") == 0;
  seconds = atoi(argv[3]);
  signal(SIGALRM, stand_still);
  int* memory = NULL;
  MPI_Win_allocate(kWords * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  words = memory;
  memset(memory, 0, kWords * sizeof(int));
  memory[kTail] = memory[kNext] = kNoRank;
  MPI_Win_lock_all(0, win);
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  const double taken = run(rounds);
  MPI_Barrier(MPI_COMM_WORLD);
  alarm(0);
  int numbers[2] = {0, 0};
  MPI_Get(numbers, 2, MPI_INT, 0, kProtected, 2, MPI_INT, win);
  MPI_Win_flush(0, win);
  const int right = numbers[0] == rounds * size && numbers[1] == rounds * size;
  if (!right) printf("FAIL mpi_lock: %d and %d turns of %ld\n", numbers[0], numbers[1], rounds * size);
  if (rank == 0) printf("acquire_us %d %.2f\n", size, taken * 1e6 / (double)(rounds * size));
  if (right && rank == 0) printf("PASS mpi_lock\n");
  fflush(stdout);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return right ? 0 : 1;
}
