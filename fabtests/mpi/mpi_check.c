// mpi_check: sends messages of all sizes in all ways that MPI programs use, and checks every byte that arrives. Exit
// status 0 and a line that begins with PASS, or a line that begins with FAIL and another status.
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static const char kHelp[] =
    "usage: mpirun ... mpi_check [options]\n"
    "  --rounds N    repeat each pattern N times (default 2)\n"
    "  --until FILE  repeat all tests until this file exists\n"
    "  --only NAME   run this test or suite only (may be given several times)\n"
    "  --skip NAME   leave this test or suite out (may be given several times)\n"
    "  --timeout S   give up after S seconds and say in which test (default 120)\n"
    "  --verbose     name each test and its time\n"
    "  --list        print the names of the tests\n";

enum { kNamesMax = 32 };

struct options {
  const char* only[kNamesMax];
  const char* skip[kNamesMax];
  int only_count, skip_count, verbose;
  unsigned timeout;
  const char* until;
};

static const struct suite {
  const char* name;
  const struct test* tests;
} kSuites[] = {{"point", kPointToPointTests}, {"match", kMatchingTests},
               {"mode", kSendModeTests},      {"part", kPartitionedTests},
               {"type", kDatatypeTests},      {"collective", kCollectiveTests},
               {"group", kGroupTests},        {"inter", kIntercommunicatorTests},
               {"window", kWindowTests},      {"accumulate", kAccumulateTests},
               {"remote", kRmaTests},         {"many", kManyObjectTests}};
enum { kSuiteCount = sizeof kSuites / sizeof kSuites[0] };

static void on_alarm(int number) {
  (void)number;
  static const char text[] = "FAIL: mpi_check hangs in test ";
  ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
  ignored += write(STDOUT_FILENO, job.test, strlen(job.test));
  ignored += write(STDOUT_FILENO, "\n", 1);
  (void)ignored;
  _exit(3);
}

static int named(const char* const* names, int count, const char* name) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(names[i], name) == 0) return 1;
  }
  return 0;
}

static void list_tests(void) {
  for (int s = 0; s < kSuiteCount; ++s) {
    printf("%s:", kSuites[s].name);
    for (const struct test* test = kSuites[s].tests; test->name; ++test) printf(" %s", test->name);
    puts("");
  }
}

static struct options parse(int argc, char** argv) {
  static const struct option long_options[] = {{"rounds", required_argument, NULL, 'r'},
                                               {"only", required_argument, NULL, 'o'},
                                               {"skip", required_argument, NULL, 's'},
                                               {"timeout", required_argument, NULL, 't'},
                                               {"verbose", no_argument, NULL, 'v'},
                                               {"list", no_argument, NULL, 'l'},
                                               {"help", no_argument, NULL, 'h'},
                                               {"until", required_argument, NULL, 'u'},
                                               {NULL, 0, NULL, 0}};
  struct options options = {.timeout = 120};
  job.rounds = 2;
  for (int c; (c = getopt_long(argc, argv, "h", long_options, NULL)) != -1;) {
    switch (c) {
      case 'r': job.rounds = atoi(optarg); break;
      case 'o':
        if (options.only_count < kNamesMax) options.only[options.only_count++] = optarg;
        break;
      case 's':
        if (options.skip_count < kNamesMax) options.skip[options.skip_count++] = optarg;
        break;
      case 't': options.timeout = (unsigned)atoi(optarg); break;
      case 'u': options.until = optarg; break;
      case 'v': options.verbose = 1; break;
      case 'l': list_tests(); exit(0);
      case 'h': fputs(kHelp, stdout); exit(0);
      default: fputs(kHelp, stderr); exit(2);
    }
  }
  return options;
}

static int wanted(const struct options* options, const struct suite* suite, const struct test* test) {
  const char* const* only = options->only;
  const char* const* skip = options->skip;
  if (named(skip, options->skip_count, suite->name) || named(skip, options->skip_count, test->name)) return 0;
  return options->only_count == 0 || named(only, options->only_count, suite->name) ||
         named(only, options->only_count, test->name);
}

static int run_all(const struct options* options) {
  int count = 0;
  for (int s = 0; s < kSuiteCount; ++s) {
    for (const struct test* test = kSuites[s].tests; test->name; ++test) {
      if (!wanted(options, &kSuites[s], test)) continue;
      const double start = MPI_Wtime();
      job.test = test->name;
      test->run();
      MPI_Barrier(job.comm);
      ++count;
      if (options->verbose && job.rank == 0) {
        printf("  %-20s %8.3f s\n", test->name, MPI_Wtime() - start);
        fflush(stdout);
      }
    }
  }
  return count;
}

/// Rank 0 decides, so that all ranks do the same.
static int again(const char* until) {
  int more = until != NULL && access(until, F_OK) != 0;
  MPI_Bcast(&more, 1, MPI_INT, 0, job.comm);
  return more;
}

int main(int argc, char** argv) {
  const struct options options = parse(argc, argv);
  job.test = "start";
  signal(SIGALRM, on_alarm);
  alarm(options.timeout);
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &job.comm);
  MPI_Comm_rank(job.comm, &job.rank);
  MPI_Comm_size(job.comm, &job.size);

  const double start = MPI_Wtime();
  int count = 0;
  do count += run_all(&options);
  while (count != 0 && again(options.until));
  job.test = "finish";
  unsigned long long mine[2] = {compared_bytes(), compared_messages()};
  unsigned long long all[2] = {0, 0};
  MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, job.comm);
  const double seconds = MPI_Wtime() - start;
  MPI_Comm_free(&job.comm);
  MPI_Finalize();
  if (count == 0) {
    if (job.rank == 0) printf("FAIL: no test of that name\n");
    return 2;
  }
  if (job.rank == 0) {
    printf("PASS mpi_check: %d tests, %d ranks, %llu messages, %llu bytes compared, %.2f s\n", count,
           job.size, all[1], all[0], seconds);
  }
  return 0;
}
