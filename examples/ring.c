/* Queues in the memory of a consumer, filled by remote writes that announce themselves.
 *
 * Rank 0 consumes. Each other process owns a ring of slots in the memory of rank 0 and writes its items
 * there with fi_writedata(): payload and 32 bits of remote completion data in one operation. The data
 * appears in the completion queue of rank 0 when the payload is in its memory. So the consumer polls no
 * slots and posts no receives; the data says whose ring has a new item and which.
 *
 * Credits come back by an atomic put (FI_ATOMIC_WRITE): after each half ring the consumer writes how many
 * items it has taken into the memory of the producer, which looks there before it writes on. A plain put
 * would do for most providers; but none promises that a processor never sees half of one. So a slot is
 * never overwritten before it was read, however slow the consumer is, and no item needs an answer of its
 * own.
 *
 *   producer: sent - credit < kSlots?  write item `sent` to slot sent % kSlots, with data (rank, sent)
 *   consumer: data (rank, n) arrives?  read slot n % kSlots, taken + 1; each kSlots / 2: put `taken`
 *
 * What orders what. The completion at the target comes after the payload of the same write: no more is
 * needed. The items of one producer may be announced in another order than written, unless FI_ORDER_WAW is
 * asked for: so the data carries the number, and credit is given for items before which none is missing.
 * Credits are put one after the other and only grow; each is complete before the next is put, or a smaller
 * one could arrive last. A producer's buffer for an item is free when the write is complete; one slot here
 * has one buffer there, and the credit of a slot comes after the write of it was done, but its completion
 * may be read later: the producer therefore flushes when it comes round. */
#include "endpoint.h"

enum { kItems = 1000, kSlots = 16, kItemWords = 32, kNumberBits = 20 };

typedef uint64_t item[kItemWords];

/* The arena of a producer. That of rank 0 begins with one too, and a ring for each rank follows. */
struct producer {
  item buffers[kSlots];
  uint64_t credit; /* items that the consumer has taken; put by rank 0 */
};

struct ring {
  item slots[kSlots];
  char read[kSlots]; /* read although an earlier item has not been announced yet */
  uint64_t taken;    /* all items before this one have been read */
  uint64_t given;    /* the credit last put; the source of that put */
};

struct consumer {
  struct ring* rings; /* by rank */
  uint64_t taken;     /* in all rings */
  int wrong;          /* words that were not what their producer wrote */
};

static uint64_t word_of(int rank, uint64_t number, size_t i) {
  return (uint64_t)rank << 40 | number << 8 | i;
}

static size_t ring_offset(int rank) {
  const size_t rings_begin = (sizeof(struct producer) + 63) / 64 * 64;
  return rings_begin + (size_t)rank * sizeof(struct ring);
}

/* Called by endpoint_progress() for each announcement. Posting from here could call endpoint_progress()
 * again, so the credit is given by the loop. */
static void on_item(struct endpoint* e, uint64_t data, void* argument) {
  struct consumer* const c = argument;
  const int rank = (int)(data >> kNumberBits);
  const uint64_t number = data & ((1u << kNumberBits) - 1);
  if (rank < 1 || rank >= e->size || number >= kItems)
    must(-FI_EIO, "remote completion data that no producer wrote");
  struct ring* const ring = &c->rings[rank];
  const size_t slot = number % kSlots;
  for (size_t i = 0; i < kItemWords; ++i) c->wrong += ring->slots[slot][i] != word_of(rank, number, i);
  memset(ring->slots[slot], 0, sizeof(item)); /* an item announced twice is found wrong */
  ring->read[slot] = 1;
  for (; ring->read[ring->taken % kSlots]; ++ring->taken) ring->read[ring->taken % kSlots] = 0;
  ++c->taken;
}

static int consume(struct endpoint* e) {
  struct consumer c = {.rings = (struct ring*)(e->arena + ring_offset(0))};
  e->on_data_argument = &c;
  e->on_data = on_item;
  endpoint_barrier(e); /* from here on items may come */
  const uint64_t all = (uint64_t)(e->size - 1) * kItems;
  while (c.taken < all) {
    endpoint_progress(e);
    if (e->outstanding > 0) continue; /* credits under way: the next ones a little later */
    for (int rank = 1; rank < e->size; ++rank) {
      struct ring* const ring = &c.rings[rank];
      if (ring->taken - ring->given < kSlots / 2) continue;
      ring->given = ring->taken;
      POST(e, fi_atomic(e->ep, &ring->given, 1, e->desc, e->peers[rank].address,
                        e->peers[rank].base + offsetof(struct producer, credit), e->peers[rank].key,
                        FI_UINT64, FI_ATOMIC_WRITE, NULL));
    }
  }
  if (c.wrong > 0) {
    fprintf(stderr, "%d words of items were not what their producer wrote\n", c.wrong);
    return 1;
  }
  printf("ring: %llu items of %zu bytes from %d producers\n", (unsigned long long)all, sizeof(item),
         e->size - 1);
  return 0;
}

static int produce(struct endpoint* e) {
  struct producer* const mine = (struct producer*)e->arena;
  endpoint_barrier(e);
  for (uint64_t number = 0; number < kItems; ++number) {
    const size_t slot = number % kSlots;
    while (number - look(&mine->credit) >= kSlots) endpoint_progress(e); /* full */
    if (slot == 0) endpoint_flush(e);                                    /* the buffers are free */
    for (size_t i = 0; i < kItemWords; ++i) mine->buffers[slot][i] = word_of(e->rank, number, i);
    POST(e, fi_writedata(
                e->ep, mine->buffers[slot], sizeof(item), e->desc, (uint64_t)e->rank << kNumberBits | number,
                e->peers[0].address,
                e->peers[0].base + ring_offset(e->rank) + offsetof(struct ring, slots) + slot * sizeof(item),
                e->peers[0].key, NULL));
  }
  endpoint_flush(e);
  return 0;
}

int main(int argc, char** argv) {
  struct endpoint e;
  const int size = argc == 4 ? atoi(argv[2]) : 0;
  const size_t bytes = ring_offset(size > 0 && size <= 1024 ? size : 0); /* only rank 0 uses the rings */
  endpoint_open(
      &e, argc, argv,
      "Rank 0 consumes items that all others write into rings in its memory, with remote completion data.",
      (struct endpoint_options){.arena_bytes = bytes, .progress = FI_PROGRESS_MANUAL});
  if (e.size < 2) must(-FI_EINVAL, "SIZE: at least one producer and one consumer are needed");
  if (e.info->domain_attr->cq_data_size < 4) must(-FI_ENOSYS, "remote completion data of 4 bytes");
  const int result = e.rank == 0 ? consume(&e) : produce(&e);
  endpoint_close(&e);
  return result;
}
