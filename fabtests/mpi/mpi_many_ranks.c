// mpi_many_ranks: measures what all ranks of a job do together, and prints lines for programs:
//
//   <measure>_us <ranks> <median> <smallest> <largest>
//
// with measure one of barrier, sum (MPI_Allreduce of 8 bytes), exchange (MPI_Alltoall of 8 bytes a rank) and
// turn (64 KiB to the next rank, from the one before). Meant for more ranks than processors, where it matters
// whether waiting ranks yield the processor. Results are checked in every round.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTag = 1, kRepetitions = 5, kRanksMax = 64, kTurnBytes = 64 << 10 };

struct ranks {
  int rank, size;
  char out[kTurnBytes], in[kTurnBytes];
};

typedef int (*work)(struct ranks* ranks, long round);

static int barrier(struct ranks* ranks, long round) {
  (void)ranks, (void)round;
  return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
}

static int sum(struct ranks* ranks, long round) {
  long mine = round + ranks->rank, all = -1;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all == ranks->size * round + (long)ranks->size * (ranks->size - 1) / 2;
}

static int exchange(struct ranks* ranks, long round) {
  long out[kRanksMax], in[kRanksMax];
  for (int i = 0; i < ranks->size; ++i) out[i] = round * kRanksMax + i, in[i] = -1;
  MPI_Alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD);
  for (int i = 0; i < ranks->size; ++i) {
    if (in[i] != round * kRanksMax + ranks->rank) return 0;
  }
  return 1;
}

static int turn(struct ranks* ranks, long round) {
  const int next = (ranks->rank + 1) % ranks->size, before = (ranks->rank + ranks->size - 1) % ranks->size;
  const long last = kTurnBytes - 1 - round % (kTurnBytes / 2), first = round % (kTurnBytes / 2);
  ranks->out[first] = ranks->out[last] = (char)(round + ranks->rank);
  ranks->in[first] = ranks->in[last] = (char)~(round + before);
  MPI_Sendrecv(ranks->out, kTurnBytes, MPI_BYTE, next, kTag, ranks->in, kTurnBytes, MPI_BYTE, before, kTag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return ranks->in[first] == (char)(round + before) && ranks->in[last] == (char)(round + before);
}

static double timed(struct ranks* ranks, const char* name, work run, long rounds) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long round = 0; round < rounds; ++round) {
    if (run(ranks, round)) continue;
    printf("FAIL mpi_many_ranks: %s, rank %d, round %ld\n", name, ranks->rank, round);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  double seconds = MPI_Wtime() - start, longest = 0;
  MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return longest;
}

static int ascending(const void* left, const void* right) {
  const double l = *(const double*)left, r = *(const double*)right;
  return (l > r) - (l < r);
}

// Every rank comes to the same number of rounds, for all know the longest time.
static void measure(struct ranks* ranks, const char* name, work run, double seconds) {
  double figures[kRepetitions];
  long rounds = 4;
  double taken = timed(ranks, name, run, rounds);
  while ((taken = timed(ranks, name, run, rounds)) < seconds / 4) rounds *= 4;
  rounds = (long)((double)rounds * seconds / taken) + 1;
  for (int i = 0; i < kRepetitions; ++i) figures[i] = timed(ranks, name, run, rounds) * 1e6 / (double)rounds;
  if (ranks->rank != 0) return;
  qsort(figures, kRepetitions, sizeof figures[0], ascending);
  printf("%s_us %d %.2f %.2f %.2f\n", name, ranks->size, figures[kRepetitions / 2], figures[0],
         figures[kRepetitions - 1]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const double seconds = argc == 2 ? atof(argv[1]) / 1e3 : 0;
  static struct ranks ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks.size);
  if (seconds <= 0 || ranks.size > kRanksMax) {
    if (ranks.rank == 0)
      fprintf(stderr, "usage: mpirun ... mpi_many_ranks MILLISECONDS (of one repetition; at most %d ranks)\n",
              kRanksMax);
    MPI_Finalize();
    return 2;
  }
  measure(&ranks, "barrier", barrier, seconds);
  measure(&ranks, "sum", sum, seconds);
  measure(&ranks, "exchange", exchange, seconds);
  measure(&ranks, "turn", turn, seconds);
  MPI_Finalize();
  return 0;
}
