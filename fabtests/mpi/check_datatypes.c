// Derived datatypes: what leaves in one layout arrives in another, and the holes stay as they were.
//
// The library's own MPI_Pack says which bytes a layout has; it needs no network and is the reference.
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { kTypeTag = 31, kSpan = 300000 };

static MPI_Datatype finished(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

// All have kElements doubles' worth of bytes and lie within kSpan bytes.
enum { kElements = 4800 };

static MPI_Datatype plain(void) {
  MPI_Datatype type;
  MPI_Type_contiguous(kElements, MPI_DOUBLE, &type);
  return finished(type);
}

static MPI_Datatype columns(void) {
  MPI_Datatype type;
  MPI_Type_vector(kElements / 3, 3, 7, MPI_DOUBLE, &type);
  return finished(type);
}

static MPI_Datatype odd_stride(void) {
  MPI_Datatype type;
  MPI_Type_create_hvector(kElements, 1, 11, MPI_DOUBLE, &type);  // unaligned, with holes of three bytes
  return finished(type);
}

static MPI_Datatype growing(void) {
  enum { kBlocks = 64, kBase = kElements / kBlocks };
  int lengths[kBlocks], places[kBlocks];
  for (int i = 0, at = 0; i < kBlocks; ++i) {
    lengths[i] = kBase + (i % 2 ? 20 : -20);
    places[i] = at;
    at += lengths[i] + i % 5;
  }
  MPI_Datatype type;
  MPI_Type_indexed(kBlocks, lengths, places, MPI_DOUBLE, &type);
  return finished(type);
}

static MPI_Datatype window_of_matrix(void) {
  const int sizes[] = {20, 30, 40}, parts[] = {12, 20, 20}, starts[] = {3, 4, 11};
  MPI_Datatype type;
  MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  return finished(type);
}

static MPI_Datatype records(void) {
  // char[3] int[2] double[1] short[1] + filling: 21 bytes of content in 40
  int lengths[] = {3, 2, 1, 1, 3};
  MPI_Aint places[] = {0, 4, 16, 24, 32};
  MPI_Datatype types[] = {MPI_CHAR, MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_CHAR};
  MPI_Datatype record, spaced, type;
  MPI_Type_create_struct(5, lengths, places, types, &record);
  MPI_Type_create_resized(record, 0, 40, &spaced);
  MPI_Type_contiguous(kElements / 3, spaced, &type);  // 24 bytes of content each
  MPI_Type_free(&record);
  MPI_Type_free(&spaced);
  return finished(type);
}

static MPI_Datatype (*const kLayouts[])(void) = {plain,   columns,          odd_stride,
                                                 growing, window_of_matrix, records};
enum { kLayoutCount = sizeof kLayouts / sizeof kLayouts[0] };

static int packed(const char* from, MPI_Datatype type, char* to, int capacity) {
  int at = 0;
  MPI_Pack(from, 1, type, to, capacity, &at, job.comm);
  return at;
}

static void through(MPI_Datatype there, MPI_Datatype here, char* out, char* in, int serial) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  char* expected = allocate(kSpan);
  char *wanted = allocate(kSpan), *got = allocate(kSpan), *untouched = allocate(kSpan);
  fill(out, kSpan, job.rank, next, serial);
  fill(expected, kSpan, previous, job.rank, serial);
  memset(in, 0, kSpan);
  memset(untouched, 0, kSpan);
  MPI_Sendrecv(out, 1, there, next, kTypeTag, in, 1, here, previous, kTypeTag, job.comm, MPI_STATUS_IGNORE);
  const int bytes = packed(expected, there, wanted, kSpan);
  expect_equal("the bytes of a layout", packed(in, here, got, kSpan), bytes);
  expect_equal("what arrived in a layout", memcmp(got, wanted, (size_t)bytes), 0);
  int at = 0;
  MPI_Unpack(wanted, bytes, &at, untouched, 1, here, job.comm);
  expect_equal("the holes of a layout", memcmp(in, untouched, kSpan), 0);
  free(expected);
  free(wanted);
  free(got);
  free(untouched);
}

static void layouts(void) {
  char *out = allocate(kSpan), *in = allocate(kSpan);
  for (int i = 0; i < kLayoutCount; ++i) {
    MPI_Datatype type = kLayouts[i]();
    MPI_Datatype same = kLayouts[i]();
    through(type, same, out, in, i);
    if (i != 5) {  // of doubles: any of them may arrive as any other
      MPI_Datatype other = kLayouts[(i + 1) % 5]();
      through(type, other, out, in, 10 + i);
      MPI_Type_free(&other);
    }
    MPI_Type_free(&type);
    MPI_Type_free(&same);
  }
  free(out);
  free(in);
}

// Sent packed, taken as a layout; and many small ones under way at once.
static void packed_messages(void) {
  const int next = (job.rank + 1) % job.size;
  const int previous = (job.rank + job.size - 1) % job.size;
  enum { kMany = 32, kSmall = 64 };
  MPI_Datatype pair;
  MPI_Type_vector(kSmall, 1, 2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  static int out[kMany][2 * kSmall], in[kMany][2 * kSmall];
  MPI_Request requests[2 * kMany];
  for (int m = 0; m < kMany; ++m) {
    for (int i = 0; i < 2 * kSmall; ++i) {
      out[m][i] = job.rank * 100000 + m * 1000 + i;
      in[m][i] = -1;
    }
    MPI_Irecv(in[m], 1, pair, previous, m, job.comm, &requests[m]);
  }
  for (int m = 0; m < kMany; ++m) MPI_Isend(out[m], 1, pair, next, m, job.comm, &requests[kMany + m]);
  MPI_Waitall(2 * kMany, requests, MPI_STATUSES_IGNORE);
  for (int m = 0; m < kMany; ++m) {
    for (int i = 0; i < 2 * kSmall - 1; ++i) {
      expect_equal("an element of a small layout", in[m][i], i % 2 ? -1 : previous * 100000 + m * 1000 + i);
    }
  }
  MPI_Type_free(&pair);
}

const struct test kDatatypeTests[] = {
    {"layouts", layouts}, {"packed_messages", packed_messages}, {NULL, NULL}};
