// mpi_scale ROUNDS [few]: what the size of a job costs, as lines for programs.
//
//   started <seconds since 1970, when the last rank had left MPI_Init>
//   <measure>_us <first> <median of the others>
//   <what> <mean of the ranks> <largest>
//
// A measure is barrier, allreduce_8, alltoall_8 or alltoall_4096; the number is the bytes for each rank. What
// is counted is kilobytes, ring_kilobytes, descriptors or sockets. Kilobytes of shared memory count in
// proportion. They include those of receive rings, which the kernel allocates as a whole.
//
// With `few` no rank meets all others, so there is no all-to-all.
//
// A round begins at a barrier and ends at the rank that is done last. Results are compared.
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "measured_calls.h"

enum { kSmall = 8, kPage = 4096 };

static unsigned char *out, *in;

static unsigned char byte_from(int from, int to, long round, int at) {
  return (unsigned char)(from * 7 + to * 13 + round * 31 + at);
}

static int alltoall(int bytes, long round) {
  for (int to = 0; to < size; ++to) {
    for (int at = 0; at < bytes; at += bytes - 1) out[to * bytes + at] = byte_from(rank, to, round, at);
  }
  memset(in, 0xaa, (size_t)size * (size_t)bytes);
  MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
  int good = 1;
  for (int from = 0; from < size; ++from) {
    for (int at = 0; at < bytes; at += bytes - 1)
      good &= in[from * bytes + at] == byte_from(from, rank, round, at);
  }
  return good;
}

static void measure(const char* name, int (*work)(int, long), int bytes, long rounds) {
  double* const times = malloc(((size_t)rounds + 1) * sizeof *times);
  if (times == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  for (long round = 0; round <= rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    const int good = work(bytes, round);
    const double mine = (MPI_Wtime() - begin) * 1e6;
    MPI_Allreduce(&mine, &times[round], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (!good) {
      printf("FAIL mpi_scale: %s, rank %d, round %ld\n", name, rank, round);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  qsort(times + 1, (size_t)rounds, sizeof *times, compare);
  if (rank == 0) printf("%s_us %.0f %.0f\n", name, times[0], times[1 + rounds / 2]);
  fflush(stdout);
  free(times);
}

static void tell(const char* what, long mine) {
  long sum = 0, most = 0;
  MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %ld %ld\n", what, sum / size, most);
}

static void tell_kilobytes(void) {
  FILE* const file = fopen("/proc/self/smaps", "r");
  char line[512];
  long all = 0, rings = 0, pss = 0;
  int in_ring = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Pss: %ld", &pss) == 1) {
      all += pss;
      if (in_ring) rings += pss;
    } else if (strchr("0123456789abcdef", line[0]) != NULL) {
      in_ring = strstr(line, " socket:[") != NULL;  // a mapping begins
    }
  }
  if (file != NULL) fclose(file);
  tell("kilobytes", all);
  tell("ring_kilobytes", rings);
}

static void tell_descriptors(void) {
  long descriptors = -1, sockets = 0;  // one of them reads the directory
  DIR* const directory = opendir("/proc/self/fd");
  for (const struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
    char path[300], target[64] = "";
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    ++descriptors;
    if (readlink(path, target, sizeof target - 1) > 0) sockets += strncmp(target, "socket:", 7) == 0;
  }
  if (directory != NULL) closedir(directory);
  tell("descriptors", descriptors);
  tell("sockets", sockets);
}

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? atol(argv[1]) : 0;
  const int few = argc > 2 && strcmp(argv[2], "few") == 0;
  struct timespec now;
  if (rounds <= 0) return 2;
  MPI_Init(&argc, &argv);
  clock_gettime(CLOCK_REALTIME, &now);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = malloc((size_t)size * kPage);
  in = malloc((size_t)size * kPage);
  if (out == NULL || in == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  if (!few) measure("alltoall_8", alltoall, kSmall, rounds);
  if (!few) measure("alltoall_4096", alltoall, kPage, rounds);
  measure("barrier", barrier, 0, rounds * 4);
  measure("allreduce_8", allreduce, kSmall, rounds * 4);
  const double mine = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  double last = 0;
  MPI_Reduce(&mine, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("started %.3f\n", last);
  tell_kilobytes();
  tell_descriptors();
  if (rank == 0) printf("PASS mpi_scale: %d ranks\n", size);
  MPI_Finalize();
  return 0;
}
