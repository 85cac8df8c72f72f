#include "check.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job job;

const size_t kSizes[kSizeCount] = {0,    1,     8,     64,    255,   1024,  1500,   4096,
                                   8192, 16383, 16385, 32768, 65536, 65539, 262144, kSizeMax};

static atomic_ullong bytes_compared;
static atomic_ullong messages_compared;

static _Noreturn void fail(void) {
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

void* allocate(size_t bytes) {
  void* memory = malloc(bytes ? bytes : 1);
  if (!memory) {
    printf("FAIL %s: rank %d: no memory for %zu bytes\n", job.test, job.rank, bytes);
    fail();
  }
  return memory;
}

// splitmix64: neighbouring counters give unrelated words.
static uint64_t word_at(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t seed_of(int from, int to, int serial) {
  return word_at(((uint64_t)(uint32_t)from << 32) | (uint32_t)to, (uint32_t)serial);
}

void fill(void* buffer, size_t bytes, int from, int to, int serial) {
  const uint64_t seed = seed_of(from, to, serial);
  unsigned char* out = buffer;
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = word_at(seed, at);
    memcpy(out + at, &word, bytes - at < 8 ? bytes - at : 8);
  }
}

void expect_bytes(const void* buffer, size_t bytes, int from, int to, int serial) {
  const uint64_t seed = seed_of(from, to, serial);
  const unsigned char* in = buffer;
  for (size_t at = 0; at < bytes; at += 8) {
    const uint64_t word = word_at(seed, at);
    const size_t part = bytes - at < 8 ? bytes - at : 8;
    if (memcmp(in + at, &word, part) == 0) continue;
    const unsigned char* wanted = (const unsigned char*)&word;
    size_t wrong = 0;
    while (in[at + wrong] == wanted[wrong]) ++wrong;
    printf("FAIL %s: rank %d: message %d from %d to %d, %zu bytes: byte %zu is 0x%02x, expected 0x%02x\n",
           job.test, job.rank, serial, from, to, bytes, at + wrong, in[at + wrong], wanted[wrong]);
    fail();
  }
  bytes_compared += bytes;
  ++messages_compared;
}

void expect_equal(const char* what, long long got, long long wanted) {
  if (got == wanted) return;
  printf("FAIL %s: rank %d: %s is %lld, expected %lld\n", job.test, job.rank, what, got, wanted);
  fail();
}

void expect_status(const MPI_Status* status, int source, int tag, size_t bytes) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  expect_equal("source", status->MPI_SOURCE, source);
  expect_equal("tag", status->MPI_TAG, tag);
  expect_equal("length", count, (long long)bytes);
}

unsigned long long compared_bytes(void) { return bytes_compared; }
unsigned long long compared_messages(void) { return messages_compared; }
