// Accumulating into windows: every operation on every kind of number, fetching, comparing and swapping.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kLength = 300 };

// Operands are small, so that no type overflows and floating point is exact in every order.
static int operand(int rank, int i) { return (rank + i) % 3 + 1; }

struct operation {
  const char* name;
  MPI_Op op;
  int for_integers_only;
  long long (*combine)(long long, long long);
};

static long long sum(long long a, long long b) { return a + b; }
static long long product(long long a, long long b) { return a * b; }
static long long least(long long a, long long b) { return a < b ? a : b; }
static long long most(long long a, long long b) { return a > b ? a : b; }
static long long both(long long a, long long b) { return a && b; }
static long long either(long long a, long long b) { return a || b; }
static long long one_of(long long a, long long b) { return !a != !b; }
static long long bits_both(long long a, long long b) { return a & b; }
static long long bits_either(long long a, long long b) { return a | b; }
static long long bits_one_of(long long a, long long b) { return a ^ b; }

// Numbers of each type, read and written as long long.
#define NUMBERS(name, type)                                                          \
  static void put_##name(void* at, int i, long long v) { ((type*)at)[i] = (type)v; } \
  static long long get_##name(const void* at, int i) { return (long long)((const type*)at)[i]; }
NUMBERS(i8, int8_t)
NUMBERS(u8, uint8_t)
NUMBERS(i16, int16_t)
NUMBERS(u16, uint16_t)
NUMBERS(i32, int32_t)
NUMBERS(u32, uint32_t)
NUMBERS(i64, int64_t)
NUMBERS(u64, uint64_t)
NUMBERS(f32, float)
NUMBERS(f64, double)

struct number {
  const char* name;
  MPI_Datatype type;
  int bytes, is_integer;
  void (*put)(void*, int, long long);
  long long (*get)(const void*, int);
};

static void one_operation(MPI_Win win, void* memory, const struct number* n, const struct operation* o) {
  char out[kLength * 8], before[kLength * 8];
  for (int i = 0; i < kLength; ++i) {
    n->put(memory, i, 2);
    n->put(out, i, operand(job.rank, i));
  }
  MPI_Win_fence(0, win);
  for (int r = 0; r < job.size; ++r)
    MPI_Accumulate(out, kLength, n->type, r, 0, kLength, n->type, o->op, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kLength; ++i) {
    long long wanted = 2;
    for (int r = 0; r < job.size; ++r) wanted = o->combine(wanted, operand(r, i));
    n->put(before, 0, wanted);  // as this type keeps it
    const long long got = n->get(memory, i);
    if (got != n->get(before, 0)) expect_equal(o->name, got, n->get(before, 0));
    n->put(memory, i, 2);
  }
  // And fetching what was there: alone with the target, so that it is known.
  MPI_Win_fence(0, win);
  const int next = (job.rank + 1) % job.size;
  memset(before, 0, sizeof before);
  MPI_Get_accumulate(out, kLength, n->type, before, kLength, n->type, next, 0, kLength, n->type, o->op, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kLength; ++i) expect_equal("what was there before", n->get(before, i), 2);
}

static void accumulate(void) {
  const struct operation operations[] = {
      {"MPI_SUM", MPI_SUM, 0, sum},         {"MPI_PROD", MPI_PROD, 0, product},
      {"MPI_MIN", MPI_MIN, 0, least},       {"MPI_MAX", MPI_MAX, 0, most},
      {"MPI_LAND", MPI_LAND, 1, both},      {"MPI_LOR", MPI_LOR, 1, either},
      {"MPI_LXOR", MPI_LXOR, 1, one_of},    {"MPI_BAND", MPI_BAND, 1, bits_both},
      {"MPI_BOR", MPI_BOR, 1, bits_either}, {"MPI_BXOR", MPI_BXOR, 1, bits_one_of}};
  const struct number numbers[] = {
      {"int8", MPI_INT8_T, 1, 1, put_i8, get_i8},     {"uint8", MPI_UINT8_T, 1, 1, put_u8, get_u8},
      {"int16", MPI_INT16_T, 2, 1, put_i16, get_i16}, {"uint16", MPI_UINT16_T, 2, 1, put_u16, get_u16},
      {"int32", MPI_INT32_T, 4, 1, put_i32, get_i32}, {"uint32", MPI_UINT32_T, 4, 1, put_u32, get_u32},
      {"int64", MPI_INT64_T, 8, 1, put_i64, get_i64}, {"uint64", MPI_UINT64_T, 8, 1, put_u64, get_u64},
      {"float", MPI_FLOAT, 4, 0, put_f32, get_f32},   {"double", MPI_DOUBLE, 8, 0, put_f64, get_f64}};
  MPI_Win win;
  void* memory = NULL;
  MPI_Win_allocate(kLength * 8, 1, MPI_INFO_NULL, job.comm, &memory, &win);
  for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; ++n) {
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; ++o) {
      if (operations[o].for_integers_only && !numbers[n].is_integer) continue;
      one_operation(win, memory, &numbers[n], &operations[o]);
    }
  }
  MPI_Win_free(&win);
}

// REPLACE leaves one rank's numbers whole, NO_OP only reads.
static void replaced(void) {
  MPI_Win win;
  long long *memory = NULL, out[kLength], in[kLength];
  MPI_Win_allocate(sizeof out, 1, MPI_INFO_NULL, job.comm, &memory, &win);
  for (int i = 0; i < kLength; ++i) {
    memory[i] = -1;
    out[i] = job.rank * 1000LL + i;
  }
  MPI_Win_fence(0, win);
  MPI_Accumulate(out, kLength, MPI_LONG_LONG, 0, 0, kLength, MPI_LONG_LONG, MPI_REPLACE, win);
  MPI_Win_fence(0, win);
  MPI_Get_accumulate(NULL, 0, MPI_LONG_LONG, in, kLength, MPI_LONG_LONG, 0, 0, kLength, MPI_LONG_LONG,
                     MPI_NO_OP, win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < kLength; ++i) {
    expect_equal("a number that one rank wrote", in[i] % 1000, i);
    expect_equal("a rank that wrote", in[i] / 1000 < job.size, 1);
  }
  MPI_Win_free(&win);
}

// Tickets by fetch-and-add, a mutex by compare-and-swap: no ticket twice, no count lost.
static void tickets(void) {
  enum { kTickets = 40 };
  MPI_Win win;
  long long* memory = NULL;
  MPI_Win_allocate(4 * sizeof(long long), sizeof(long long), MPI_INFO_NULL, job.comm, &memory, &win);
  memset(memory, 0, 4 * sizeof(long long));
  MPI_Barrier(job.comm);
  MPI_Win_lock_all(0, win);
  const long long one = 1, zero = 0;
  long long mine = 0;
  for (int i = 0; i < kTickets; ++i) {
    long long ticket = -1, held = 1, counted = 0;
    MPI_Fetch_and_op(&one, &ticket, MPI_LONG_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    mine += ticket;
    while (held) {  // the mutex is free when it was zero
      MPI_Compare_and_swap(&one, &zero, &held, MPI_LONG_LONG, 0, 1, win);
      MPI_Win_flush(0, win);
    }
    MPI_Fetch_and_op(NULL, &counted, MPI_LONG_LONG, 0, 2, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    ++counted;
    MPI_Accumulate(&counted, 1, MPI_LONG_LONG, 0, 2, 1, MPI_LONG_LONG, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
    MPI_Accumulate(&zero, 1, MPI_LONG_LONG, 0, 1, 1, MPI_LONG_LONG, MPI_REPLACE, win);
    MPI_Win_flush(0, win);
  }
  MPI_Win_unlock_all(win);
  long long all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_SUM, job.comm);
  const long long total = (long long)kTickets * job.size;
  expect_equal("the sum of all tickets", all, total * (total - 1) / 2);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  MPI_Fetch_and_op(NULL, &all, MPI_LONG_LONG, 0, 2, MPI_NO_OP, win);
  MPI_Win_unlock(0, win);
  expect_equal("what the mutex guarded", all, total);
  MPI_Barrier(job.comm);
  MPI_Win_free(&win);
}

const struct test kAccumulateTests[] = {
    {"accumulate", accumulate}, {"replaced", replaced}, {"tickets", tickets}, {NULL, NULL}};
