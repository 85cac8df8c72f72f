/* A program that sleeps until something happens, one of several kinds: completions of libfabric, and whatever else has
 * a descriptor (here a timer). Rank 0 serves requests of the others that come now and then; between them it uses no
 * processor.
 *
 * The rule for sleeping on a completion queue that was opened with FI_WAIT_FD:
 *
 *   1  read completions until there are none (fi_cq_read gives -FI_EAGAIN);
 *   2  fi_trywait: 0 means that nothing came meanwhile and that anything that comes from now on wakes the descriptor;
 *      -FI_EAGAIN means that something may have come: begin anew with 1;
 *   3  poll() on the descriptor and on one's own; whatever woke, begin anew with 1.
 *
 * Without fi_trywait a completion that came between 1 and 3 could wait for the next one. What the descriptor is, a
 * socket or an event, is the provider's business: nothing is ever read from it. */
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "endpoint.h"

enum { kRequests = 20, kReceives = 16, kTickMilliseconds = 5 };

struct arena {
  uint64_t reply;
  struct {
    uint64_t rank, number;
  } requests[kReceives];
  uint64_t replies[1024]; /* by rank: a rank waits for its reply before it asks again */
};

struct server {
  int left;
  unsigned long sleeps, wakes, ticks; /* wakes: by the completion queue */
};

/* Asked for again when its request has been answered. */
static void receive(struct endpoint* e, size_t slot) {
  struct arena* const a = (struct arena*)e->arena;
  POST_RECEIVE(e, fi_recv(e->ep, &a->requests[slot], sizeof a->requests[slot], e->desc, FI_ADDR_UNSPEC,
                          &a->requests[slot]));
}

static void on_request(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument) {
  struct server* const s = argument;
  struct arena* const a = (struct arena*)e->arena;
  const size_t slot = (size_t)((char*)entry->op_context - (char*)a->requests) / sizeof a->requests[0];
  const uint64_t rank = a->requests[slot].rank, number = a->requests[slot].number;
  if (rank >= (uint64_t)e->size) must(-FI_EIO, "a request that no rank has sent");
  a->replies[rank] = number * number;
  POST(e, fi_send(e->ep, &a->replies[rank], sizeof a->replies[rank], e->desc, e->peers[rank].address, NULL));
  receive(e, slot);
  --s->left;
}

static int open_timer(void) {
  const struct itimerspec each = {{0, kTickMilliseconds * 1000000L}, {0, kTickMilliseconds * 1000000L}};
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  if (timer < 0 || timerfd_settime(timer, 0, &each, NULL)) must(-FI_EOTHER, "timerfd");
  return timer;
}

static void serve(struct endpoint* e) {
  struct server s = {.left = (e->size - 1) * kRequests};
  struct fid* const waited[] = {&e->cq->fid};
  struct pollfd events[2] = {{.events = POLLIN}, {.fd = open_timer(), .events = POLLIN}};
  must(fi_control(&e->cq->fid, FI_GETWAIT, &events[0].fd),
       "FI_GETWAIT: a descriptor of the completion queue");
  e->on_message = on_request;
  e->on_message_argument = &s;
  for (size_t slot = 0; slot < kReceives; ++slot) receive(e, slot);
  endpoint_barrier(e); /* now requests may come */
  while (s.left > 0 || e->outstanding > 0) {
    if (endpoint_progress(e)) continue;                                   /* 1 */
    const int may_sleep = fi_trywait(e->fabric, (struct fid**)waited, 1); /* 2 */
    if (may_sleep == -FI_EAGAIN) continue;
    must(may_sleep, "fi_trywait");
    if (poll(events, 2, 10000) < 1) must(-FI_ETIMEDOUT, "no request for 10 seconds"); /* 3 */
    ++s.sleeps;
    s.wakes += events[0].revents != 0;
    uint64_t expired = 0;
    if (read(events[1].fd, &expired, sizeof expired) == sizeof expired) s.ticks += expired;
  }
  printf(
      "sleeping: %d requests answered, slept %lu times, woken %lu times by the queue, %lu ticks of a timer\n",
      (e->size - 1) * kRequests, s.sleeps, s.wakes, s.ticks);
  close(events[1].fd);
}

static void on_reply(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument) {
  (void)e;
  (void)entry;
  *(int*)argument = 1;
}

static int ask(struct endpoint* e) {
  struct arena* const a = (struct arena*)e->arena;
  int wrong = 0, answered = 0;
  e->on_message = on_reply;
  e->on_message_argument = &answered;
  endpoint_barrier(e);
  for (uint64_t number = 1; number <= kRequests; ++number) {
    answered = 0;
    a->requests[0].rank = (uint64_t)e->rank;
    a->requests[0].number = number;
    POST_RECEIVE(e, fi_recv(e->ep, &a->reply, sizeof a->reply, e->desc, e->peers[0].address, NULL));
    POST(e, fi_send(e->ep, &a->requests[0], sizeof a->requests[0], e->desc, e->peers[0].address, NULL));
    while (!answered || e->outstanding > 0) endpoint_progress(e);
    wrong += a->reply != number * number;
    poll(NULL, 0, 1); /* as a client that has something else to do */
  }
  return wrong;
}

int main(int argc, char** argv) {
  struct endpoint e;
  endpoint_open(&e, argc, argv, "A server that sleeps in poll() until requests come, or a timer expires.",
                (struct endpoint_options){.caps = FI_MSG,
                                          .arena_bytes = sizeof(struct arena),
                                          .progress = FI_PROGRESS_MANUAL,
                                          .wait = FI_WAIT_FD});
  int wrong = 0;
  if (e.rank == 0) {
    serve(&e);
  } else {
    wrong = ask(&e);
  }
  if (wrong > 0) fprintf(stderr, "rank %d: %d replies were wrong\n", e.rank, wrong);
  endpoint_close(&e);
  return wrong > 0;
}
