/* Messages with tags: what matches what, and when a buffer may be used again.
 *
 * Each process sends to its right neighbour one message of each length, tagged with its number, and one word of mail
 * to rank 0.
 *
 *   - Receives from the left neighbour name source and tag, and are posted in the opposite order of the sends: the tag
 *     finds the message, not the order. Messages that come before their receive is posted are kept by the provider.
 *   - Rank 0 takes mail from any source: FI_ADDR_UNSPEC, and a mask of tag bits that do not matter (`ignore`), in
 *     which the sender has put its rank. The completion shows the whole tag.
 *   - A send buffer may be changed when its completion has been read; until then each send has one of its own. The
 *     context of a receive, here its buffer, says which of them is complete.
 *   - The last message has a quarter of a megabyte: nothing is different for the program. */
#include "endpoint.h"

enum { kMessages = 12, kLongest = 1 << 18 };
static const uint64_t kMail = 1ull << 32; /* tags of mail; the lower half is the sender's rank */

struct arena {
  char out[kMessages][kLongest], in[kMessages][kLongest];
  uint64_t letter;        /* one's own mail */
  uint64_t letters[1024]; /* mail to rank 0 */
};

struct expected {
  struct endpoint* e;
  int messages, letters, wrong;
};

static size_t length_of(int message) { return message == kMessages - 1 ? kLongest : (size_t)1 << message; }
static char byte_of(int rank, int message, size_t i) {
  return (char)(rank * 31 + message * 7 + (int)(i % 251));
}

static void on_message(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument) {
  struct expected* const x = argument;
  struct arena* const a = (struct arena*)e->arena;
  if (entry->tag & kMail) {
    const uint64_t rank = entry->tag & ~kMail;
    const size_t place = (size_t)((uint64_t*)entry->op_context - a->letters);
    x->wrong += a->letters[place] != rank * rank;
    --x->letters;
    return;
  }
  const int message = (int)entry->tag, left = (e->rank + e->size - 1) % e->size;
  const char* const in = a->in[message];
  int wrong = entry->len != length_of(message) || entry->op_context != in;
  for (size_t i = 0; i < length_of(message); ++i) wrong |= in[i] != byte_of(left, message, i);
  x->wrong += wrong;
  --x->messages;
}

int main(int argc, char** argv) {
  struct endpoint e;
  endpoint_open(&e, argc, argv, "Messages with tags, to a neighbour and from any source.",
                (struct endpoint_options){.caps = FI_TAGGED | FI_DIRECTED_RECV,
                                          .arena_bytes = sizeof(struct arena),
                                          .progress = FI_PROGRESS_MANUAL});
  struct arena* const a = (struct arena*)e.arena;
  const fi_addr_t right = e.peers[(e.rank + 1) % e.size].address,
                  left = e.peers[(e.rank + e.size - 1) % e.size].address;
  struct expected x = {.e = &e, .messages = kMessages, .letters = e.rank == 0 ? e.size : 0};
  e.on_message = on_message;
  e.on_message_argument = &x;

  for (int letter = 0; letter < x.letters; ++letter)
    POST_RECEIVE(&e, fi_trecv(e.ep, &a->letters[letter], sizeof a->letter, e.desc, FI_ADDR_UNSPEC, kMail,
                              kMail - 1, &a->letters[letter]));
  for (int i = kMessages - 1; i >= 0; --i)
    POST_RECEIVE(&e, fi_trecv(e.ep, a->in[i], kLongest, e.desc, left, (uint64_t)i, 0, a->in[i]));
  for (int i = 0; i < kMessages; ++i) {
    for (size_t k = 0; k < length_of(i); ++k) a->out[i][k] = byte_of(e.rank, i, k);
    POST(&e, fi_tsend(e.ep, a->out[i], length_of(i), e.desc, right, (uint64_t)i, NULL));
  }
  a->letter = (uint64_t)e.rank * (uint64_t)e.rank;
  POST(&e, fi_tsend(e.ep, &a->letter, sizeof a->letter, e.desc, e.peers[0].address, kMail | (uint64_t)e.rank,
                    NULL));
  endpoint_flush(&e); /* from here on the buffers of sends are free */
  while (x.messages > 0 || x.letters > 0) endpoint_progress(&e);
  if (x.wrong > 0) fprintf(stderr, "rank %d: %d messages were wrong\n", e.rank, x.wrong);
  if (e.rank == 0 && x.wrong == 0)
    printf("messages: %d from the left, of 1 to %d bytes, and %d letters\n", kMessages, kLongest, e.size);
  endpoint_close(&e);
  return x.wrong > 0;
}
