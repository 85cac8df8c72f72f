// mpi_collective_times [ROUNDS [sizes | MEASURE]]: what collectives of all ranks take, as lines for programs:
//
//   <measure>_us <ranks> <median> <smallest> <largest>
//   <measure>_processor_us <ranks> <mean>
//
// with measure one of bcast_1048576, bcast_65536, allreduce_1048576, barrier, allreduce_8, barrier_alone and
// allreduce_8_alone. A round begins at a barrier of MPI's own and ends at the rank that is done last, so that
// a broadcast whose root leaves early does not look fast. Barriers and reductions are called kInARow times in
// a round, as programs with loops do; those that are alone, once: with more ranks than processors the time
// until the last rank has left the barrier before is then in the figure. Results are checked. The processor's
// time is that of a rank, of all its threads, by getrusage; what the kernel does for a frame outside of the
// rank's calls is in no rank's time.
//
// With `sizes` it measures bcast_turns_N instead, for N from 8 bytes to 64 KB: broadcasts in a row, whose
// root each rank is in turn; with the name of a measure only that.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "measured_calls.h"

enum { kBytesMax = 1 << 20, kInARow = 16, kTurns = 64 };

static unsigned char buffer[kBytesMax];
static const char* only;

static int bcast(int bytes, long round) {
  const unsigned char mark = (unsigned char)(round + 1);
  buffer[0] = buffer[bytes - 1] = rank == 0 ? mark : 0;
  MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
  return buffer[0] == mark && buffer[bytes - 1] == mark;
}

static int bcast_turns(int bytes, long round) {
  const int root = (int)(round % size);
  const unsigned char mark = (unsigned char)(round + 1);
  buffer[0] = buffer[bytes - 1] = rank == root ? mark : 0;
  MPI_Bcast(buffer, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
  return buffer[0] == mark && buffer[bytes - 1] == mark;
}

static double processor_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int allreduce_long(int bytes, long round) {
  static long mine[kBytesMax / sizeof(long)], all[kBytesMax / sizeof(long)];
  const int count = bytes / (int)sizeof(long);
  mine[0] = mine[count / 2] = mine[count - 1] = round + rank;
  all[0] = all[count / 2] = all[count - 1] = -1;
  MPI_Allreduce(mine, all, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const long sum = size * round + (long)size * (size - 1) / 2;
  return all[0] == sum && all[count / 2] == sum && all[count - 1] == sum;
}

static void measure(const char* name, int (*work)(int, long), int bytes, long rounds, int in_a_row) {
  if (only != NULL && strcmp(only, name) != 0) return;
  double* const times = malloc((size_t)rounds * sizeof *times);
  if (times == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  double processor = 0, of_all = 0;
  for (long round = -3; round < rounds; ++round) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double used = processor_us();
    const double begin = MPI_Wtime();
    int good = 1;
    for (int i = 0; i < in_a_row; ++i) good &= work(bytes, round + 3 + i);
    const double mine = (MPI_Wtime() - begin) * 1e6 / in_a_row;
    if (round >= 0) processor += processor_us() - used;
    double last = 0;
    PMPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (!good) {
      printf("FAIL %s: rank %d, round %ld\n", name, rank, round);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (round >= 0) times[round] = last;
  }
  PMPI_Allreduce(&processor, &of_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  qsort(times, (size_t)rounds, sizeof *times, compare);
  if (rank == 0)
    printf("%s_us %d %.1f %.1f %.1f\n", name, size, times[rounds / 2], times[0], times[rounds - 1]);
  if (rank == 0) printf("%s_processor_us %d %.1f\n", name, size, of_all / size / (double)(rounds * in_a_row));
  free(times);
}

static void measure_sizes(long rounds) {
  for (int bytes = 8; bytes <= 65536; bytes *= 2) {
    char name[32];
    snprintf(name, sizeof name, "bcast_turns_%d", bytes);
    measure(name, bcast_turns, bytes, rounds, kTurns);
  }
}

static void measure_all(long rounds) {
  measure("bcast_1048576", bcast, kBytesMax, rounds, 1);
  measure("bcast_65536", bcast, 65536, rounds * 2, 1);
  measure("allreduce_1048576", allreduce_long, kBytesMax, rounds, 1);
  measure("barrier", barrier, 0, rounds, kInARow);
  measure("allreduce_8", allreduce, 8, rounds, kInARow);
  measure("barrier_alone", barrier, 0, rounds * 10, 1);
  measure("allreduce_8_alone", allreduce, 8, rounds * 10, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long rounds = argc > 1 ? atol(argv[1]) : 50;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && strcmp(argv[2], "sizes") == 0) {
    measure_sizes(rounds);
  } else {
    only = argc > 2 ? argv[2] : NULL;
    measure_all(rounds);
  }
  MPI_Finalize();
  return 0;
}
