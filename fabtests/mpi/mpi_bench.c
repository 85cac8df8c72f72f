// mpi_bench: one-way latency, bandwidth and message rate between two ranks, as lines for programs:
//
//   <measure> <bytes> <median> <smallest> <largest>
//
// with measure one of latency_us, bandwidth_MBps (10^6 bytes), rate_kmsgs (10^3 messages). Every figure is
// the median over repetitions of equal length in time. The data of the first and last message of each
// repetition is checked.
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  kTag = 1,
  kWindow = 64,
  kRepetitionsMax = 101,
  kLatencySizes = 3,
  kBandwidthBytes = 1 << 20,
  kBandwidthWindow = 8
};

static const int kLatencyBytes[kLatencySizes] = {8, 1024, 65536};

static const char kHelp[] =
    "usage: mpirun ... mpi_bench [options]\n"
    "  --ranks A,B        the two ranks that measure, the others wait (default 0,1)\n"
    "  --repetitions N    medians over N repetitions, 1 to 101 (default 5)\n"
    "  --milliseconds T   length of one repetition (default 100)\n"
    "  --pin              bind rank A to the first processor we may use and B to the second\n";

struct bench {
  int rank, peer, is_first, repetitions, pin;
  int ranks[2];
  double seconds;
  char* out;
  char* in[kWindow];
};

// One round of a measurement, `count` times; returns after the last reply.
typedef void (*pattern)(struct bench* bench, int bytes, long count);

static void stamp(struct bench* bench, int bytes, long serial) {
  memset(bench->out, (int)(serial & 0xff), (size_t)bytes);
}

static void check(const char* data, int bytes, long serial) {
  for (int i = 0; i < bytes; ++i) {
    if (data[i] == (char)(serial & 0xff)) continue;
    printf("FAIL mpi_bench: byte %d of %d is wrong\n", i, bytes);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

static void ping_pong(struct bench* bench, int bytes, long count) {
  for (long i = 0; i < count; ++i) {
    if (i == 0 || i == count - 1) stamp(bench, bytes, i);
    if (bench->is_first) {
      MPI_Send(bench->out, bytes, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD);
      MPI_Recv(bench->in[0], bytes, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(bench->in[0], bytes, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(bench->out, bytes, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD);
    }
    if (i == 0 || i == count - 1) check(bench->in[0], bytes, i);
  }
}

static void stream(struct bench* bench, int bytes, long count, int window) {
  MPI_Request requests[kWindow];
  for (long i = 0; i < count; ++i) {
    if (bench->is_first) {
      if (i == 0 || i == count - 1) stamp(bench, bytes, i);
      for (int w = 0; w < window; ++w) {
        MPI_Isend(bench->out, bytes, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD, &requests[w]);
      }
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      MPI_Recv(NULL, 0, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      for (int w = 0; w < window; ++w) {
        MPI_Irecv(bench->in[w], bytes, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD, &requests[w]);
      }
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      if (i == 0 || i == count - 1) check(bench->in[window - 1], bytes, i);
      MPI_Send(NULL, 0, MPI_BYTE, bench->peer, kTag, MPI_COMM_WORLD);
    }
  }
}

static void stream_large(struct bench* bench, int bytes, long count) {
  stream(bench, bytes, count, kBandwidthWindow);
}
static void stream_small(struct bench* bench, int bytes, long count) { stream(bench, bytes, count, kWindow); }

static double timed(struct bench* bench, pattern run, int bytes, long count) {
  const double start = MPI_Wtime();
  run(bench, bytes, count);
  return MPI_Wtime() - start;
}

// The first of the pair decides how many rounds fill one repetition.
static long rounds_for(struct bench* bench, pattern run, int bytes) {
  long count = 4;
  timed(bench, run, bytes, count);
  for (;;) {
    const double seconds = timed(bench, run, bytes, count);
    long next = seconds >= bench->seconds / 4 ? 0 : count * 4;
    long final = (long)((double)count * bench->seconds / (seconds > 1e-9 ? seconds : 1e-9)) + 2;
    long plan[2] = {next, final};
    if (bench->is_first) {
      MPI_Send(plan, 2, MPI_LONG, bench->peer, kTag, MPI_COMM_WORLD);
    } else {
      MPI_Recv(plan, 2, MPI_LONG, bench->peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (plan[0] == 0) return plan[1];
    count = plan[0];
  }
}

static int ascending(const void* left, const void* right) {
  const double l = *(const double*)left, r = *(const double*)right;
  return (l > r) - (l < r);
}

// figure = scale * rounds / seconds, or scale * seconds / rounds for a latency.
static void measure(struct bench* bench, const char* name, pattern run, int bytes, double scale,
                    int is_latency) {
  double figures[kRepetitionsMax];
  const long rounds = rounds_for(bench, run, bytes);
  for (int r = 0; r < bench->repetitions; ++r) {
    const double seconds = timed(bench, run, bytes, rounds);
    figures[r] = is_latency ? scale * seconds / (double)rounds : scale * (double)rounds / seconds;
  }
  if (!bench->is_first) return;
  qsort(figures, (size_t)bench->repetitions, sizeof figures[0], ascending);
  printf("%s %d %.3f %.3f %.3f\n", name, bytes, figures[bench->repetitions / 2], figures[0],
         figures[bench->repetitions - 1]);
  fflush(stdout);
}

static void pin(const struct bench* bench) {
  cpu_set_t allowed, one;
  int skip = bench->is_first ? 0 : 1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

static void run_pair(struct bench* bench) {
  bench->is_first = bench->rank == bench->ranks[0];
  bench->peer = bench->is_first ? bench->ranks[1] : bench->ranks[0];
  if (bench->pin) pin(bench);
  bench->out = malloc(kBandwidthBytes);
  if (bench->out) memset(bench->out, 1, kBandwidthBytes);
  for (int w = 0; w < kWindow; ++w) {
    const size_t bytes = w < kBandwidthWindow ? kBandwidthBytes : 4096;
    bench->in[w] = malloc(bytes);
    if (!bench->out || !bench->in[w]) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(bench->in[w], 2, bytes);
  }
  for (int i = 0; i < kLatencySizes; ++i) measure(bench, "latency_us", ping_pong, kLatencyBytes[i], 0.5e6, 1);
  measure(bench, "bandwidth_MBps", stream_large, kBandwidthBytes,
          kBandwidthWindow * (double)kBandwidthBytes / 1e6, 0);
  measure(bench, "rate_kmsgs", stream_small, 8, kWindow / 1e3, 0);
  for (int w = 0; w < kWindow; ++w) free(bench->in[w]);
  free(bench->out);
}

static void parse(int argc, char** argv, struct bench* bench) {
  static const struct option long_options[] = {{"ranks", required_argument, NULL, 'r'},
                                               {"repetitions", required_argument, NULL, 'n'},
                                               {"milliseconds", required_argument, NULL, 'm'},
                                               {"pin", no_argument, NULL, 'p'},
                                               {"help", no_argument, NULL, 'h'},
                                               {NULL, 0, NULL, 0}};
  int good = 1;
  for (int c; (c = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
    switch (c) {
      case 'r': good = sscanf(optarg, "%d,%d", &bench->ranks[0], &bench->ranks[1]) == 2; break;
      case 'n': bench->repetitions = atoi(optarg); break;
      case 'm': bench->seconds = atof(optarg) / 1e3; break;
      case 'p': bench->pin = 1; break;
      case 'h': fputs(kHelp, stdout); exit(0);
      default: good = 0;
    }
    good = good && bench->repetitions >= 1 && bench->repetitions <= kRepetitionsMax && bench->seconds > 0;
    if (!good) {
      fputs(kHelp, stderr);
      exit(2);
    }
  }
}

int main(int argc, char** argv) {
  struct bench bench = {.repetitions = 5, .seconds = 0.1, .ranks = {0, 1}};
  int size = 0;
  parse(argc, argv, &bench);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (bench.ranks[0] == bench.ranks[1] || bench.ranks[0] < 0 || bench.ranks[1] < 0 ||
      bench.ranks[0] >= size || bench.ranks[1] >= size) {
    if (bench.rank == 0) fprintf(stderr, "mpi_bench: needs two different ranks below %d\n", size);
    MPI_Finalize();
    return 2;
  }
  if (bench.rank == bench.ranks[0] || bench.rank == bench.ranks[1]) run_pair(&bench);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
