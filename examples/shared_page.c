/* A page of memory that processes on several nodes share, kept coherent by put and fetch-add.
 *
 * Each process has a copy of the page and reads it as ordinary memory. Changes are made in turns:
 *
 *   ticket   a fetch-add on a word of rank 0 draws the number of one's turn;
 *   wait     until the `version` of one's own copy has reached that number. Nothing travels while a process
 *            waits: it looks at its own memory. Its copy is then up to date, and no other process changes
 *            anything;
 *   change   the words in one's own copy, and put those words into all other copies;
 *   flush    until the puts are complete, which with FI_DELIVERY_COMPLETE means: in the memory of all
 *            targets;
 *   publish  add 1 to the `version` of every copy, one's own included.
 *
 * Why it is right. A version is raised t times only after t turns have flushed their puts, so a process
 * that sees version t in its copy has the data of all t turns there. The flush between put and publish is
 * necessary: nothing orders operations towards different targets, and an order among those towards one
 * (FI_ORDER_WAW) is not asked for here. Versions are added to, not put: the publications of turns t and t+1
 * come from different processes, reach a copy in either order, and a put of t that came last would take t+1
 * away. One's own version is raised by an atomic on one's own endpoint, not by the processor: two ways of
 * changing one word are atomic with each other only where a provider says so.
 *
 * The version is read by the processor, as one aligned word of 8 bytes; see memory-model.md in this
 * provider's documents for what such a look may find. */
#include "endpoint.h"

enum { kTurns = 100, kWords = 4096 / sizeof(uint64_t) };

/* What lies in the arena of each process. */
struct copy {
  uint64_t page[kWords]; /* word 0 counts all changes; each change also raises one other word */
  uint64_t version;      /* how many turns are published in this copy */
  uint64_t tickets;      /* rank 0's: the next turn */
  uint64_t drawn;        /* where fetch-add puts the value it found */
  uint64_t one;          /* operand: 1 */
};

static uint64_t remote(const struct endpoint* e, int rank, size_t offset) {
  return e->peers[rank].base + offset;
}

static uint64_t draw_ticket(struct endpoint* e, struct copy* mine) {
  POST(e, fi_fetch_atomic(e->ep, &mine->one, 1, e->desc, &mine->drawn, e->desc, e->peers[0].address,
                          remote(e, 0, offsetof(struct copy, tickets)), e->peers[0].key, FI_UINT64, FI_SUM,
                          NULL));
  endpoint_flush(e); /* the value is in `drawn` when the operation is complete */
  return mine->drawn;
}

/* Changes a word in one's own copy and in all others. The source of a put is not changed before the flush. */
static void change(struct endpoint* e, struct copy* mine, size_t word) {
  ++mine->page[word];
  const size_t offset = offsetof(struct copy, page) + word * sizeof(uint64_t);
  for (int rank = 0; rank < e->size; ++rank) {
    if (rank == e->rank) continue;
    POST(e, fi_write(e->ep, &mine->page[word], sizeof(uint64_t), e->desc, e->peers[rank].address,
                     remote(e, rank, offset), e->peers[rank].key, NULL));
  }
}

static void publish(struct endpoint* e, struct copy* mine) {
  for (int rank = 0; rank < e->size; ++rank) {
    POST(e, fi_atomic(e->ep, &mine->one, 1, e->desc, e->peers[rank].address,
                      remote(e, rank, offsetof(struct copy, version)), e->peers[rank].key, FI_UINT64, FI_SUM,
                      NULL));
  }
}

/* True if the copy is what it must be after `turns` turns. */
static int right(const struct copy* copy, uint64_t turns) {
  uint64_t sum = 0;
  for (size_t i = 1; i < kWords; ++i) sum += look(&copy->page[i]);
  return look(&copy->page[0]) == turns && sum == turns;
}

static void wait_for_version(struct endpoint* e, const struct copy* mine, uint64_t version) {
  /* Progress, although nothing of ours is under way: peers put into this memory, and with manual progress
   * they may need this call. */
  while (look(&mine->version) < version) endpoint_progress(e);
}

int main(int argc, char** argv) {
  struct endpoint e;
  endpoint_open(
      &e, argc, argv, "A page shared by processes on several nodes, kept coherent by put and fetch-add.",
      (struct endpoint_options){.arena_bytes = sizeof(struct copy), .progress = FI_PROGRESS_MANUAL});
  struct copy* const mine = (struct copy*)e.arena;
  mine->one = 1;
  endpoint_barrier(&e); /* all arenas are ready */

  int wrong = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    const uint64_t ticket = draw_ticket(&e, mine);
    wait_for_version(&e, mine, ticket);
    if (!right(mine, ticket)) ++wrong;
    change(&e, mine, 0);
    change(&e, mine, 1 + (ticket * 7919) % (kWords - 1));
    endpoint_flush(&e);
    publish(&e, mine);
  }

  const uint64_t turns = (uint64_t)e.size * kTurns;
  wait_for_version(&e, mine, turns);
  if (!right(mine, turns)) ++wrong;
  if (wrong > 0)
    fprintf(stderr, "rank %d: the page was not what all turns before had made it, %d times\n", e.rank, wrong);
  if (e.rank == 0 && !wrong)
    printf("shared_page: %llu turns, each saw all changes before it\n", (unsigned long long)turns);
  endpoint_close(&e);
  return wrong ? 1 : 0;
}
