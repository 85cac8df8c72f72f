/* A message goes from process 0 to process 1 and back: half of the time of a round trip, by mailboxes and by plain
 * fi_tsend and fi_trecv on an endpoint of its own. Both are measured in turns, so that both meet the same noise, and
 * the best turn of each counts. The difference is what names, types and threads cost.
 *
 * Further processes only take part in the beginning and the end. */
#include <time.h>

#include "../endpoint.h"
#include "mailbox.h"

enum { kTurns = 5, kTrips = 100, kWarmUp = 20 };
static const size_t kSizes[] = {8, 256, 4096, 16384};
enum { kSizeCount = sizeof kSizes / sizeof kSizes[0] };

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Every byte of a word depends on its trip, so that a message that comes twice, late or in part is seen. */
static int64_t word_of(int64_t trip, size_t i) {
  return (int64_t)(((uint64_t)trip * 1000003 + i + 1) * 0x9e3779b97f4a7c15u);
}

static void fill(int64_t* words, size_t bytes, int64_t trip) {
  for (size_t i = 0; i < bytes / sizeof *words; ++i) words[i] = word_of(trip, i);
}

static int differs(const int64_t* words, size_t bytes, int64_t trip) {
  for (size_t i = 0; i < bytes / sizeof *words; ++i) {
    if (words[i] != word_of(trip, i)) return 1;
  }
  return 0;
}

static struct mailbox *mine, *other;
/* Two messages: what goes out may still be on its way when the next is retrieved. */
static struct message *going, *coming;
static int64_t out[16384 / sizeof(int64_t)], in[16384 / sizeof(int64_t)];
static int wrong;

static void post(size_t bytes, int64_t trip) {
  fill(out, bytes, trip);
  message_clear(going);
  message_pack(going, kMessageInt64, out, bytes / sizeof *out);
  mailbox_post(other, going);
}

static void retrieve(size_t bytes, int64_t trip) {
  mailbox_retrieve(mine, coming);
  message_unpack(coming, kMessageInt64, in, bytes / sizeof *in);
  wrong += differs(in, bytes, trip);
}

/* The same by libfabric alone. A message is in the arena; its second half is for what comes. */
static struct endpoint plain;
static int came;

static void on_message(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument) {
  (void)e, (void)entry, (void)argument;
  came = 1;
}

static void plain_send(size_t bytes, int64_t trip) {
  endpoint_flush(&plain);
  fill((int64_t*)plain.arena, bytes, trip);
  POST(&plain,
       fi_tsend(plain.ep, plain.arena, bytes, plain.desc, plain.peers[1 - plain.rank].address, 1, NULL));
}

static void plain_receive(size_t bytes, int64_t trip) {
  char* const place = plain.arena + sizeof out;
  came = 0;
  POST_RECEIVE(&plain, fi_trecv(plain.ep, place, bytes, plain.desc, FI_ADDR_UNSPEC, 1, 0, NULL));
  while (!came) endpoint_progress(&plain);
  wrong += differs((const int64_t*)place, bytes, trip);
}

typedef void step(size_t bytes, int64_t trip);

/* Microseconds for one way. At the end nothing is left to send: who calls one endpoint makes no progress with the
 * other. */
static double trips(step* send, step* receive, size_t bytes, int count) {
  const double begun = now_us();
  for (int64_t trip = 0; trip < count; ++trip) {
    if (plain.rank == 0) send(bytes, trip);
    receive(bytes, trip);
    if (plain.rank == 1) send(bytes, trip);
  }
  const double each = (now_us() - begun) / count / 2;
  endpoint_flush(&plain);
  message_clear(going);
  return each;
}

static void measure(size_t bytes) {
  double best[2] = {1e9, 1e9};
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int by_mailbox = 0; by_mailbox < 2; ++by_mailbox) {
      step *const send = by_mailbox ? post : plain_send, *const receive =
                                                             by_mailbox ? retrieve : plain_receive;
      trips(send, receive, bytes, kWarmUp);
      const double each = trips(send, receive, bytes, kTrips);
      if (each < best[by_mailbox]) best[by_mailbox] = each;
    }
  }
  if (plain.rank == 0) printf("%8zu bytes: mailbox %7.2f us, fi_tsend %7.2f us\n", bytes, best[1], best[0]);
}

int main(int argc, char** argv) {
  endpoint_open(&plain, argc, argv, "A message to and fro, by mailboxes and without.",
                (struct endpoint_options){
                    .caps = FI_TAGGED, .arena_bytes = 2 * sizeof out, .progress = FI_PROGRESS_MANUAL});
  plain.on_message = on_message;
  mailbox_open(argc, argv, "");
  if (plain.size < 2) must(-FI_EINVAL, "pingpong: SIZE is at least 2");
  if (plain.rank < 2) {
    mine = mailbox_create(plain.rank == 0 ? "left" : "right");
    other = mailbox_clone(plain.rank == 0 ? "right" : "left");
    going = message_create();
    coming = message_create();
    trips(post, retrieve, 8,
          1); /* both have cloned: process 0 must poll its mailboxes for that, to serve names */
    for (int i = 0; i < kSizeCount; ++i) measure(kSizes[i]);
    message_destroy(going);
    message_destroy(coming);
    mailbox_destroy(mine);
    mailbox_destroy(other);
  }
  if (wrong > 0) fprintf(stderr, "pingpong, process %d: %d messages were wrong\n", plain.rank, wrong);
  if (plain.rank == 0 && wrong == 0) printf("pingpong: all messages came as they were sent\n");
  mailbox_close();
  endpoint_close(&plain);
  return wrong > 0;
}
