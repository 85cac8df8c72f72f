// Checks collectives of MPI, with or without libcluster-coll in front of it: all roots, types, lengths around the
// limits at which the algorithms change, communicators that overlap, and random ones with computed results.
//
//   mpi_collectives [RANDOM [SEED [one-type]]]     RANDOM collectives after the systematic ones (default: 300)
//
// one-type: all ranks describe the bytes of a broadcast alike. The standard does not demand it, but Open MPI 4's own
// broadcast goes wrong otherwise, over whatever network: it cuts the bytes into as many parts as there are elements.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS_MAX = 5, BYTES_MAX = 1 << 20 };

struct group {
  MPI_Comm comm;
  int rank, size;
  const char* name;
};

static struct group groups[COMMS_MAX];
static int group_count;
static unsigned char *source, *target;
static long checks;
static int one_type;

static void fail(const struct group* group, const char* what, long detail) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("FAIL mpi_collectives: rank %d, %s: %s (%ld)\n", rank, group->name, what, detail);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static uint64_t state;
/// The same numbers at all ranks (splitmix64).
static uint64_t draw(uint64_t limit) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % limit;
}

/// What rank `rank` contributes at position i of collective number `round`: small, so that sums and products of
/// every type are exact.
static int value(int rank, long i, long round) { return (int)((rank * 7 + i * 3 + round) % 5) + 1; }

struct type {
  MPI_Datatype mpi;
  int size;
  int real;
};
static struct type types[8];
enum { TYPES = 8 };

static void make_types(void) {
  const struct type all[TYPES] = {{MPI_INT, sizeof(int), 0},
                                  {MPI_DOUBLE, sizeof(double), 1},
                                  {MPI_FLOAT, sizeof(float), 1},
                                  {MPI_INT8_T, 1, 0},
                                  {MPI_UINT16_T, 2, 0},
                                  {MPI_INT64_T, 8, 0},
                                  {MPI_UNSIGNED, sizeof(unsigned), 0},
                                  {MPI_LONG_DOUBLE, sizeof(long double), 1}};
  memcpy(types, all, sizeof all);
}

static void store(const struct type* type, void* at, long i, long v) {
  if (type->mpi == MPI_DOUBLE)
    ((double*)at)[i] = (double)v;
  else if (type->mpi == MPI_FLOAT)
    ((float*)at)[i] = (float)v;
  else if (type->mpi == MPI_LONG_DOUBLE)
    ((long double*)at)[i] = (long double)v;
  else if (type->size == 1)
    ((int8_t*)at)[i] = (int8_t)v;
  else if (type->size == 2)
    ((uint16_t*)at)[i] = (uint16_t)v;
  else if (type->size == 4)
    ((int32_t*)at)[i] = (int32_t)v;
  else
    ((int64_t*)at)[i] = v;
}

static long load(const struct type* type, const void* at, long i) {
  if (type->mpi == MPI_DOUBLE) return (long)((const double*)at)[i];
  if (type->mpi == MPI_FLOAT) return (long)((const float*)at)[i];
  if (type->mpi == MPI_LONG_DOUBLE) return (long)((const long double*)at)[i];
  if (type->size == 1) return ((const int8_t*)at)[i];
  if (type->size == 2) return ((const uint16_t*)at)[i];
  if (type->size == 4) return ((const int32_t*)at)[i];
  return ((const int64_t*)at)[i];
}

static long combine(MPI_Op op, long a, long b) {
  if (op == MPI_SUM) return a + b;
  if (op == MPI_MAX) return a > b ? a : b;
  if (op == MPI_MIN) return a < b ? a : b;
  if (op == MPI_BAND) return a & b;
  if (op == MPI_BOR) return a | b;
  if (op == MPI_BXOR) return a ^ b;
  if (op == MPI_LAND) return a && b;
  return a || b;
}

static MPI_Op op_for(int number, const struct type* type) {
  const MPI_Op any[] = {MPI_SUM, MPI_MAX, MPI_MIN};
  const MPI_Op integer[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR};
  return type->real ? any[number % 3] : integer[number % 8];
}

static void fill(const struct group* group, const struct type* type, void* at, long count, long round) {
  for (long i = 0; i < count; ++i) store(type, at, i, value(group->rank, i, round));
}

static void check_reduced(const struct group* group, const struct type* type, MPI_Op op, long count,
                          long round, const char* what) {
  // Values repeat with period 5 in the position.
  long expected[5];
  for (int i = 0; i < 5; ++i) {
    expected[i] = value(0, i, round);
    for (int rank = 1; rank < group->size; ++rank)
      expected[i] = combine(op, expected[i], value(rank, i, round));
    if (type->size == 1) expected[i] = (int8_t)expected[i];
  }
  for (long i = 0; i < count; ++i) {
    if (load(type, target, i) != expected[i % 5]) fail(group, what, i);
  }
  ++checks;
}

static void test_bcast(const struct group* group, const struct type* type, int root, long count, long round) {
  memset(target, 0x77, (size_t)(count * type->size));
  if (group->rank == root) fill(group, type, target, count, round);
  if (MPI_Bcast(target, (int)count, type->mpi, root, group->comm) != MPI_SUCCESS)
    fail(group, "MPI_Bcast", count);
  for (long i = 0; i < count; ++i) {
    if (load(type, target, i) != value(root, i, round)) fail(group, "MPI_Bcast: wrong element", i);
  }
  ++checks;
}

/// The root sends every second element, the others receive them behind each other (or likewise with `one_type`).
static void test_bcast_vector(const struct group* group, int root, long count, long round) {
  const struct type* const type = &types[0];
  const int spread = one_type || group->rank == root ? 2 : 1;
  MPI_Datatype every_second;
  memset(target, 0x77, (size_t)(2 * count * type->size));
  MPI_Type_vector((int)count, 1, 2, type->mpi, &every_second);
  MPI_Type_commit(&every_second);
  if (group->rank == root) {
    for (long i = 0; i < count; ++i) store(type, target, 2 * i, value(root, i, round));
  }
  MPI_Bcast(target, spread == 2 ? 1 : (int)count, spread == 2 ? every_second : type->mpi, root, group->comm);
  for (long i = 0; i < count; ++i) {
    if (load(type, target, spread * i) != value(root, i, round))
      fail(group, "MPI_Bcast of a vector: wrong element", i);
  }
  MPI_Type_free(&every_second);
  ++checks;
}

static void test_allreduce(const struct group* group, const struct type* type, MPI_Op op, long count,
                           long round, int in_place) {
  memset(target, 0x77, (size_t)(count * type->size));
  fill(group, type, in_place ? target : source, count, round);
  if (MPI_Allreduce(in_place ? MPI_IN_PLACE : source, target, (int)count, type->mpi, op, group->comm) !=
      MPI_SUCCESS)
    fail(group, "MPI_Allreduce", count);
  check_reduced(group, type, op, count, round, "MPI_Allreduce: wrong element");
}

/// Pairs of a value and the rank that has it. Of equal values the lower rank's counts.
static void test_extreme(const struct group* group, int smallest, int count, int in_place) {
  struct pair {
    double value;
    int rank;
  };
  struct pair* const mine = (struct pair*)source;
  struct pair* const found = (struct pair*)target;
  const int sign = smallest ? 1 : -1;
  for (int i = 0; i < count; ++i) {
    mine[i].value = sign * (double)((group->rank + i) % group->size / 2);
    mine[i].rank = group->rank;
    found[i] = mine[i];
  }
  MPI_Allreduce(in_place ? MPI_IN_PLACE : (void*)mine, found, count, MPI_DOUBLE_INT,
                smallest ? MPI_MINLOC : MPI_MAXLOC, group->comm);
  for (int i = 0; i < count; ++i) {
    int best = 0;
    for (int other = 1; other < group->size; ++other) {
      if ((other + i) % group->size / 2 < (best + i) % group->size / 2) best = other;
    }
    if (found[i].rank != best || found[i].value != sign * (double)((best + i) % group->size / 2))
      fail(group, "MPI_Allreduce of pairs: wrong element", i);
  }
  ++checks;
}

static void test_reduce(const struct group* group, const struct type* type, MPI_Op op, int root, long count,
                        long round, int in_place) {
  memset(target, 0x77, (size_t)(count * type->size));
  const int mine_in_place = in_place && group->rank == root;
  fill(group, type, mine_in_place ? target : source, count, round);
  MPI_Reduce(mine_in_place ? MPI_IN_PLACE : source, target, (int)count, type->mpi, op, root, group->comm);
  if (group->rank == root) check_reduced(group, type, op, count, round, "MPI_Reduce: wrong element");
}

static void test_allgather(const struct group* group, const struct type* type, long count, long round,
                           int in_place) {
  const long limit = BYTES_MAX / type->size / group->size;
  if (count > limit) count = limit;
  memset(target, 0x77, (size_t)(count * type->size * group->size));
  unsigned char* const own = target + count * type->size * group->rank;
  fill(group, type, in_place ? own : source, count, round);
  MPI_Allgather(in_place ? MPI_IN_PLACE : source, (int)count, type->mpi, target, (int)count, type->mpi,
                group->comm);
  for (int rank = 0; rank < group->size; ++rank) {
    for (long i = 0; i < count; ++i) {
      if (load(type, target, rank * count + i) != value(rank, i, round))
        fail(group, "MPI_Allgather: wrong element", i);
    }
  }
  ++checks;
}

/// No rank leaves before all have come: what each wrote before is there for the next allreduce.
static void test_barrier(const struct group* group) {
  MPI_Barrier(group->comm);
  ++checks;
}

static void add_group(MPI_Comm comm, const char* name) {
  struct group* const group = &groups[group_count++];
  group->comm = comm;
  group->name = name;
  MPI_Comm_rank(comm, &group->rank);
  MPI_Comm_size(comm, &group->size);
}

static void make_groups(void) {
  int rank, size;
  MPI_Comm comm;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  add_group(MPI_COMM_WORLD, "world");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  add_group(comm, "copy of world");
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
  add_group(comm, "world in reverse");
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
  add_group(comm, "even or odd ranks");
  MPI_Comm_split(MPI_COMM_WORLD, rank < (size + 1) / 2, rank, &comm);
  add_group(comm, "first or second half");
}

static void systematic(void) {
  const long lengths[] = {0, 1, 3, 1024, 8191, 8193, 32767, 32768, 32769, 65536, 300001};
  for (int g = 0; g < group_count; ++g) {
    const struct group* const group = &groups[g];
    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; ++l) {
      const struct type* const type = &types[(l + (unsigned)g) % TYPES];
      const long count = lengths[l] / type->size;
      for (int root = 0; root < group->size; ++root) {
        test_bcast(group, type, root, count, root + l);
        test_reduce(group, type, op_for((int)l, type), root, count, root + l, root % 2);
      }
      test_bcast_vector(group, (int)l % group->size, lengths[l] / types[0].size, l);
      test_allreduce(group, type, op_for((int)l, type), count, l, 0);
      test_allreduce(group, type, op_for((int)l + 1, type), count, l, 1);
      test_allgather(group, type, count, l, 0);
      test_allgather(group, type, count, l, 1);
      test_extreme(group, (int)l % 2, 1 << l, (int)l / 2 % 2);
      test_barrier(group);
    }
    for (int t = 0; t < TYPES; ++t) {
      for (int op = 0; op < 8; ++op) test_allreduce(group, &types[t], op_for(op, &types[t]), 17, op, 0);
    }
  }
}

/// A message of the application that is under way meanwhile needs progress of MPI in ranks that wait in a collective.
static void test_progress(void) {
  const struct group* const group = &groups[0];
  const int count = 1 << 19;
  MPI_Request request = MPI_REQUEST_NULL;
  if (group->size < 2) return;
  if (group->rank == 0) MPI_Isend(source, count, MPI_BYTE, 1, 9, group->comm, &request);
  if (group->rank == 1) MPI_Recv(target, count, MPI_BYTE, 0, 9, group->comm, MPI_STATUS_IGNORE);
  MPI_Barrier(group->comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ++checks;
}

static void one_at_random(long round) {
  const struct group* const group = &groups[draw((uint64_t)group_count)];
  const uint64_t call = draw(16);
  const struct type* const type = &types[draw(TYPES)];
  const long magnitude = 1L << draw(18);
  const long count = (long)draw((uint64_t)magnitude + 1) / type->size;
  // Halves have different sizes: a root that every one has.
  const int root = (int)draw((uint64_t)(groups[0].size / 2 > 0 ? groups[0].size / 2 : 1));
  const MPI_Op op = op_for((int)draw(8), type);
  const int in_place = (int)draw(2);
  if (call < 4)
    test_bcast(group, type, root, count, round);
  else if (call < 5)
    test_bcast_vector(group, root, count / 2, round);
  else if (call < 8)
    test_allreduce(group, type, op, count, round, in_place);
  else if (call < 10)
    test_reduce(group, type, op, root, count, round, in_place);
  else if (call < 12)
    test_allgather(group, type, count / 8, round, in_place);
  else
    test_barrier(group);
}

int main(int argc, char** argv) {
  const long random_count = argc > 1 ? atol(argv[1]) : 300;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  one_type = argc > 3 && strcmp(argv[3], "one-type") == 0;
  MPI_Init(&argc, &argv);
  source = malloc(2 * BYTES_MAX);
  target = malloc(2 * BYTES_MAX);
  if (source == NULL || target == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(source, 1, 2 * BYTES_MAX);
  make_types();
  make_groups();
  test_progress();
  systematic();
  for (long round = 0; round < random_count; ++round) one_at_random(round);
  // Communicators that come and go.
  for (int i = 0; i < 20; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(groups[i % group_count].comm, &comm);
    struct group group = groups[i % group_count];
    group.comm = comm;
    test_bcast(&group, &types[0], 0, 100, i);
    test_allreduce(&group, &types[1], MPI_SUM, 10, i, 0);
    MPI_Comm_free(&comm);
  }
  for (int g = 1; g < group_count; ++g) MPI_Comm_free(&groups[g].comm);
  MPI_Barrier(MPI_COMM_WORLD);
  if (groups[0].rank == 0) printf("PASS mpi_collectives: %ld checked\n", checks);
  free(source);
  free(target);
  MPI_Finalize();
  return 0;
}
