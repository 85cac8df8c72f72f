/* A counter and a lock that processes on several nodes share, by atomics alone.
 *
 * The counter is one word of rank 0. fetch-add gives every value to one process only: a ticket machine, a
 * work queue.
 *
 * The lock is that of Mellor-Crummey and Scott (MCS): the processes that want it form a queue, and each
 * waits at a word of its own memory. `tail` at rank 0 names the last of the queue; the node of each process
 * names its successor and says whether it still has to wait. Names are rank + 1; 0 is none.
 *
 *   acquire  (A) next = 0, waiting = 1 in one's own node
 *            (B) before = swap(tail, me)
 *            none before: the lock is ours; else: next of `before` = me, wait until our `waiting` is 0
 *   release  (C) write protected data, and flush
 *            compare-swap(tail, me -> 0); it was me: no process waits
 *            else: wait until our `next` is set, and clear `waiting` of that process
 *
 * The flushes are part of the algorithm:
 *  - (A) is complete before (B) begins. From (B) on others write these two words. Were the setting of
 *    `waiting` still under way then, it could arrive after the predecessor had cleared it: this process
 *    would wait for ever. So the words are set by atomics on one's own endpoint, the same way by which the
 *    others change them, and flushed.
 *  - (C): the next owner must find the protected data. It lies at rank 0 and the hand-over goes to another
 *    process: no order bit and no fence orders operations towards two targets, only waiting for the
 *    completion does, with FI_DELIVERY_COMPLETE (endpoint.c asks for it).
 *  - The fetched value of (B) and of the compare-swap is there when the operation is complete, not before.
 * A process that waits calls the provider all the time: others change its node, and with manual progress
 * that may need these calls. */
#include <time.h>

#include "endpoint.h"

enum { kRounds = 100 };

struct arena {
  uint64_t counter;                              /* rank 0's */
  uint64_t tail;                                 /* rank 0's: the last in the queue */
  uint64_t protected_data[2];                    /* rank 0's: two words that the lock keeps equal */
  uint64_t next, waiting;                        /* one's node in the queue */
  uint64_t operand, compare, fetched, buffer[2]; /* local: what operations begin with and end in */
};

#define AT(member) offsetof(struct arena, member)

static struct arena* arena_of(struct endpoint* e) { return (struct arena*)e->arena; }
static uint64_t remote(const struct endpoint* e, int rank, size_t offset) {
  return e->peers[rank].base + offset;
}

/* fetch-add (FI_SUM) and swap (FI_ATOMIC_WRITE): the previous value. */
static uint64_t fetch(struct endpoint* e, int rank, size_t offset, enum fi_op op, uint64_t operand) {
  struct arena* const a = arena_of(e);
  a->operand = operand;
  POST(e, fi_fetch_atomic(e->ep, &a->operand, 1, e->desc, &a->fetched, e->desc, e->peers[rank].address,
                          remote(e, rank, offset), e->peers[rank].key, FI_UINT64, op, NULL));
  endpoint_flush(e);
  return a->fetched;
}

/* Replaces `compare` by `operand` if it is there; what was there. */
static uint64_t compare_swap(struct endpoint* e, int rank, size_t offset, uint64_t compare,
                             uint64_t operand) {
  struct arena* const a = arena_of(e);
  a->compare = compare;
  a->operand = operand;
  POST(e, fi_compare_atomic(e->ep, &a->operand, 1, e->desc, &a->compare, e->desc, &a->fetched, e->desc,
                            e->peers[rank].address, remote(e, rank, offset), e->peers[rank].key, FI_UINT64,
                            FI_CSWAP, NULL));
  endpoint_flush(e);
  return a->fetched;
}

/* Sets a word that others change by atomics, and returns when it is set. */
static void set(struct endpoint* e, int rank, size_t offset, uint64_t value) {
  struct arena* const a = arena_of(e);
  a->operand = value;
  POST(e, fi_atomic(e->ep, &a->operand, 1, e->desc, e->peers[rank].address, remote(e, rank, offset),
                    e->peers[rank].key, FI_UINT64, FI_ATOMIC_WRITE, NULL));
  endpoint_flush(e);
}

static void acquire(struct endpoint* e) {
  struct arena* const a = arena_of(e);
  const uint64_t me = (uint64_t)e->rank + 1;
  set(e, e->rank, AT(next), 0);
  set(e, e->rank, AT(waiting), 1);
  const uint64_t before = fetch(e, 0, AT(tail), FI_ATOMIC_WRITE, me);
  if (before == 0) return;
  set(e, (int)before - 1, AT(next), me);
  while (look(&a->waiting)) endpoint_progress(e);
}

static void release(struct endpoint* e) {
  struct arena* const a = arena_of(e);
  const uint64_t me = (uint64_t)e->rank + 1;
  if (compare_swap(e, 0, AT(tail), me, 0) == me) return;
  while (look(&a->next) == 0) endpoint_progress(e); /* a successor has swapped, and will name itself */
  set(e, (int)look(&a->next) - 1, AT(waiting), 0);
}

/* Reads the two protected words, which must be equal, and raises both. No other operation would notice if
 * two processes did this at once. */
static int raise_protected(struct endpoint* e) {
  struct arena* const a = arena_of(e);
  POST(e, fi_read(e->ep, a->buffer, sizeof a->buffer, e->desc, e->peers[0].address,
                  remote(e, 0, AT(protected_data)), e->peers[0].key, NULL));
  endpoint_flush(e);
  const int equal = a->buffer[0] == a->buffer[1];
  for (int i = 0; i < 2; ++i) {
    ++a->buffer[i];
    POST(e,
         fi_write(e->ep, &a->buffer[i], sizeof a->buffer[i], e->desc, e->peers[0].address,
                  remote(e, 0, AT(protected_data) + (size_t)i * sizeof a->buffer[i]), e->peers[0].key, NULL));
  }
  endpoint_flush(e); /* (C) */
  return equal;
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char** argv) {
  struct endpoint e;
  endpoint_open(
      &e, argc, argv, "A counter and an MCS lock shared by processes on several nodes, by atomics.",
      (struct endpoint_options){.arena_bytes = sizeof(struct arena), .progress = FI_PROGRESS_MANUAL});
  struct arena* const a = arena_of(&e);
  int wrong = 0;
  endpoint_barrier(&e);

  uint64_t last = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t value = fetch(&e, 0, AT(counter), FI_SUM, 1);
    if (round > 0 && value <= last) ++wrong; /* it only grows */
    last = value;
  }
  endpoint_barrier(&e);
  const uint64_t all = (uint64_t)e.size * kRounds;
  if (e.rank == 0 && look(&a->counter) != all) {
    fprintf(stderr, "the counter is %llu after %llu additions\n", (unsigned long long)look(&a->counter),
            (unsigned long long)all);
    ++wrong;
  }

  const double begin = microseconds();
  for (int round = 0; round < kRounds; ++round) {
    acquire(&e);
    if (!raise_protected(&e)) ++wrong;
    release(&e);
  }
  endpoint_barrier(&e);
  const double each = (microseconds() - begin) / (double)all;
  if (e.rank == 0 && (look(&a->protected_data[0]) != all || look(&a->protected_data[1]) != all)) {
    fprintf(stderr, "the protected words are %llu and %llu after %llu turns\n",
            (unsigned long long)look(&a->protected_data[0]), (unsigned long long)look(&a->protected_data[1]),
            (unsigned long long)all);
    ++wrong;
  }
  if (wrong > 0) fprintf(stderr, "rank %d: %d values were wrong\n", e.rank, wrong);
  if (e.rank == 0 && !wrong)
    printf("lock_counter: %llu additions, %llu turns under the lock, %.1f us each\n", (unsigned long long)all,
           (unsigned long long)all, each);
  endpoint_close(&e);
  return wrong ? 1 : 0;
}
