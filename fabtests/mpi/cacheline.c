// cacheline: nanoseconds a cache line takes from one processor to another.
//
// Virtual processors move: two of them may share a cache now and not a second later, and everything that
// passes through memory then changes by a factor. A benchmark that prints this number beside its own shows
// whether two runs may be compared.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { kRounds = 20000, kSpinsMax = 100000000 };

static _Alignas(128) atomic_int line;

static cpu_set_t allowed;

static int pin(int index) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one);
  }
  return -1;
}

static int await(int value) {
  for (long spins = 0; atomic_load_explicit(&line, memory_order_acquire) != value; ++spins) {
    if (spins == kSpinsMax) return -1;
  }
  return 0;
}

static void* answer(void* argument) {
  (void)argument;
  for (int i = 0; i < 2 * kRounds && await(2 * i + 1) == 0; ++i) {
    atomic_store_explicit(&line, 2 * i + 2, memory_order_release);
  }
  return NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void) {
  pthread_t thread;
  double start = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || pin(1) != 0 ||
      pthread_create(&thread, NULL, answer, NULL) != 0 || pin(0) != 0) {
    fprintf(stderr, "cacheline: needs two processors\n");
    return 1;
  }
  for (int i = 0; i < 2 * kRounds; ++i) {
    if (i == kRounds) start = now();
    atomic_store_explicit(&line, 2 * i + 1, memory_order_release);
    if (await(2 * i + 2) != 0) return 1;
  }
  printf("%.1f\n", (now() - start) / (2.0 * kRounds));
  pthread_join(thread, NULL);
  return 0;
}
