// mpi_many_ranks: what all ranks of a job do together costs, as lines for programs:
//
//   <measure>_us <ranks> <median> <smallest> <largest>
//
// with measure one of barrier, sum (MPI_Allreduce of 8 bytes), exchange (MPI_Alltoall of 8 bytes a rank) and
// turn (64 KiB to the next rank, from the one before). Meant for more ranks than processors, where it matters
// whether those that wait let the others work. Results are checked in every round.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTag = 1, kRepetitions = 5, kRanksMax = 64, kTurnBytes = 64 << 10 };

struct crowd {
  int rank, size;
  char out[kTurnBytes], in[kTurnBytes];
};

typedef int (*work)(struct crowd* crowd, long round);

static int barrier(struct crowd* crowd, long round) {
  (void)crowd, (void)round;
  return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS;
}

static int sum(struct crowd* crowd, long round) {
  long mine = round + crowd->rank, all = -1;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all == crowd->size * round + (long)crowd->size * (crowd->size - 1) / 2;
}

static int exchange(struct crowd* crowd, long round) {
  long out[kRanksMax], in[kRanksMax];
  for (int i = 0; i < crowd->size; ++i) out[i] = round * kRanksMax + i, in[i] = -1;
  MPI_Alltoall(out, 1, MPI_LONG, in, 1, MPI_LONG, MPI_COMM_WORLD);
  for (int i = 0; i < crowd->size; ++i) {
    if (in[i] != round * kRanksMax + crowd->rank) return 0;
  }
  return 1;
}

static int turn(struct crowd* crowd, long round) {
  const int next = (crowd->rank + 1) % crowd->size, before = (crowd->rank + crowd->size - 1) % crowd->size;
  const long last = kTurnBytes - 1 - round % (kTurnBytes / 2), first = round % (kTurnBytes / 2);
  crowd->out[first] = crowd->out[last] = (char)(round + crowd->rank);
  crowd->in[first] = crowd->in[last] = (char)~(round + before);
  MPI_Sendrecv(crowd->out, kTurnBytes, MPI_BYTE, next, kTag, crowd->in, kTurnBytes, MPI_BYTE, before, kTag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return crowd->in[first] == (char)(round + before) && crowd->in[last] == (char)(round + before);
}

static double timed(struct crowd* crowd, const char* name, work run, long rounds) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (long round = 0; round < rounds; ++round) {
    if (run(crowd, round)) continue;
    printf("FAIL mpi_many_ranks: %s, rank %d, round %ld\n", name, crowd->rank, round);
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
static void measure(struct crowd* crowd, const char* name, work run, double seconds) {
  double figures[kRepetitions];
  long rounds = 4;
  double taken = timed(crowd, name, run, rounds);
  while ((taken = timed(crowd, name, run, rounds)) < seconds / 4) rounds *= 4;
  rounds = (long)((double)rounds * seconds / taken) + 1;
  for (int i = 0; i < kRepetitions; ++i) figures[i] = timed(crowd, name, run, rounds) * 1e6 / (double)rounds;
  if (crowd->rank != 0) return;
  qsort(figures, kRepetitions, sizeof figures[0], ascending);
  printf("%s_us %d %.2f %.2f %.2f\n", name, crowd->size, figures[kRepetitions / 2], figures[0],
         figures[kRepetitions - 1]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const double seconds = argc == 2 ? atof(argv[1]) / 1e3 : 0;
  static struct crowd crowd;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &crowd.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &crowd.size);
  if (seconds <= 0 || crowd.size > kRanksMax) {
    if (crowd.rank == 0)
      fprintf(stderr, "usage: mpirun ... mpi_many_ranks MILLISECONDS (of one repetition; at most %d ranks)\n",
              kRanksMax);
    MPI_Finalize();
    return 2;
  }
  measure(&crowd, "barrier", barrier, seconds);
  measure(&crowd, "sum", sum, seconds);
  measure(&crowd, "exchange", exchange, seconds);
  measure(&crowd, "turn", turn, seconds);
  MPI_Finalize();
  return 0;
}
