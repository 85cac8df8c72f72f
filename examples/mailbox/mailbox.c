/* How it works.
 *
 * A mailbox is a tag at the process that created it. Post is fi_tsend to that process; retrieve is fi_trecv of the
 * tag from any source, into the message itself. Messages that come before somebody retrieves them are kept by the
 * provider.
 *
 * Threads share one endpoint under one lock. Each could have an endpoint of its own, but then a mailbox would belong
 * to a thread, and every process would need the addresses of all threads. The lock is short: no thread sleeps with
 * it, and a thread that polls lets the others in after each look.
 *
 * Of all threads that wait, one polls the endpoint, for all of them; the others sleep, each at the semaphore of the
 * message that it waits for. When the polling thread has what it wanted, it wakes a sleeper, which polls from then
 * on. So a process with many waiting threads uses one processor.
 *
 * Names are kept by rank 0, in its directory. It has the tag 0, and is served by whichever thread of rank 0 polls. */
#define _GNU_SOURCE
#include "mailbox.h"

#include <sched.h>

#include "../endpoint.h"

enum { kNamesMax = 1024, kDirectoryTag = 0 };
enum request { kCreate, kClone };

struct message {
  char* bytes;           /* kMessageBytes in the arena */
  size_t length, at;     /* what is packed; where to unpack next */
  int busy;              /* sends and receives of it that are not complete */
  sem_t wake;            /* where the thread that waits for it sleeps */
  struct message* next;  /* among those slept for */
  uint32_t asleep, used; /* it is slept for; it is not free */
};

struct mailbox {
  int rank;
  uint64_t tag;
};

struct item {
  uint32_t type, count;
};

struct entry { /* of the directory; of a clone that waits: where the answer goes */
  char name[kMailboxNameMax];
  struct mailbox mailbox;
};

static struct {
  struct endpoint e;
  pthread_mutex_t lock; /* protects all that follows, and the endpoint */
  int entering;         /* threads that want the lock */
  int polling;          /* some thread polls */
  struct message messages[kMessagesMax], *sleepers;
  uint64_t tags; /* used so far */
  struct message *request, *answer;
  struct entry names[kNamesMax], clones[kNamesMax];
  size_t name_count, clone_count;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

int mailbox_rank(void) { return g.e.rank; }
int mailbox_size(void) { return g.e.size; }

static void must_hold(int condition, int error, const char* tried) { must(condition ? 0 : -error, tried); }

/* ---- the lock, and waiting ---- */

static void enter(void) {
  __atomic_add_fetch(&g.entering, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_lock(&g.lock);
  __atomic_sub_fetch(&g.entering, 1, __ATOMIC_SEQ_CST);
}

static void leave(void) { pthread_mutex_unlock(&g.lock); }

/* A mutex is not fair: a thread that took it again at once would keep the others out for long. */
static void let_others_in(void) {
  if (__atomic_load_n(&g.entering, __ATOMIC_SEQ_CST) == 0) return;
  leave();
  while (__atomic_load_n(&g.entering, __ATOMIC_SEQ_CST) > 0) sched_yield();
  enter();
}

static void wake(struct message* m) {
  struct message** link = &g.sleepers;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  m->asleep = 0;
  semaphore_v(&m->wake);
}

static void sleep_for(struct message* m) {
  m->next = g.sleepers;
  g.sleepers = m;
  m->asleep = 1;
  leave();
  semaphore_p(&m->wake);
  enter();
}

/* Something with this message is complete. */
static void complete(struct message* m) {
  if (--m->busy == 0 && m->asleep) wake(m);
}

static void on_complete(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument) {
  (void)e, (void)argument;
  complete(entry->op_context);
}

static void on_message(struct endpoint* e, const struct fi_cq_tagged_entry* entry, void* argument) {
  (void)e, (void)argument;
  struct message* const m = entry->op_context;
  m->length = entry->len;
  complete(m);
}

static void serve_directory(void);

static void progress(void* argument) {
  (void)argument;
  endpoint_progress(&g.e);
  if (g.e.rank == 0) serve_directory();
}

static void wait_for(struct message* m) {
  while (m->busy > 0) {
    if (g.polling) {
      sleep_for(m);
      continue;
    }
    g.polling = 1;
    while (m->busy > 0) {
      progress(NULL);
      let_others_in();
    }
    g.polling = 0;
    if (g.sleepers) wake(g.sleepers);
  }
}

/* ---- messages ---- */

struct message* message_create(void) {
  enter();
  struct message* m = g.messages;
  while (m < g.messages + kMessagesMax && m->used) ++m;
  must_hold(m < g.messages + kMessagesMax, FI_ENOSPC, "message_create: kMessagesMax are in use");
  m->used = 1;
  m->length = m->at = 0;
  leave();
  return m;
}

void message_destroy(struct message* m) {
  message_clear(m);
  enter();
  m->used = 0;
  leave();
}

void message_clear(struct message* m) {
  enter();
  wait_for(m);
  m->length = m->at = 0;
  leave();
}

static size_t bytes_of(enum message_type type, size_t count) {
  static const size_t kBytes[] = {1, 4, 8, 8};
  return kBytes[type] * count;
}

static size_t rounded(size_t bytes) { return (bytes + 7) / 8 * 8; }

void message_pack(struct message* m, enum message_type type, const void* values, size_t count) {
  const struct item item = {type, (uint32_t)count};
  must_hold(count <= kMessageBytes, FI_EMSGSIZE, "message_pack: more than a message holds");
  const size_t bytes = bytes_of(type, count), end = m->length + sizeof item + rounded(bytes);
  must_hold(end <= kMessageBytes, FI_EMSGSIZE, "message_pack: more than a message holds");
  memcpy(m->bytes + m->length, &item, sizeof item);
  memcpy(m->bytes + m->length + sizeof item, values, bytes);
  m->length = end;
}

/* Messages come from this program's own processes: a wrong type or count is an error of the program. */
static struct item next_item(const struct message* m) {
  struct item item = {0, 0};
  if (m->length - m->at >= sizeof item) memcpy(&item, m->bytes + m->at, sizeof item);
  return item;
}

size_t message_count(const struct message* m) { return next_item(m).count; }

void message_unpack(struct message* m, enum message_type type, void* values, size_t count) {
  const struct item item = next_item(m);
  const size_t bytes = bytes_of(type, count), end = m->at + sizeof item + rounded(bytes);
  must_hold(item.type == type && item.count == count && end <= m->length, FI_EINVAL,
            "message_unpack: the next item has another type or count");
  memcpy(values, m->bytes + m->at + sizeof item, bytes);
  m->at = end;
}

/* ---- mailboxes; these are called with the lock ---- */

static void post(struct mailbox to, struct message* m) {
  ++m->busy;
  POST(&g.e, fi_tsend(g.e.ep, m->bytes, m->length, g.e.desc, g.e.peers[to.rank].address, to.tag, m));
}

static void receive(uint64_t tag, struct message* m) {
  m->length = m->at = 0;
  ++m->busy;
  POST_RECEIVE(&g.e, fi_trecv(g.e.ep, m->bytes, kMessageBytes, g.e.desc, FI_ADDR_UNSPEC, tag, 0, m));
}

/* ---- the directory: rank 0 has it, the others ask ---- */

static struct entry* find(const char* name) {
  for (size_t i = 0; i < g.name_count; ++i) {
    if (strcmp(g.names[i].name, name) == 0) return &g.names[i];
  }
  return NULL;
}

/* One answer at a time: it is short, so nobody has to take it before it is sent. */
static void answer(struct mailbox to, int known, struct mailbox is) {
  while (g.answer->busy > 0) endpoint_progress(&g.e);
  g.answer->length = g.answer->at = 0;
  const int64_t values[] = {known, is.rank, (int64_t)is.tag};
  message_pack(g.answer, kMessageInt64, values, 3);
  post(to, g.answer);
}

/* Keeps the name, and answers those that wait for it. */
static void create(struct entry added, struct mailbox asks) {
  must_hold(g.name_count < kNamesMax, FI_ENOSPC, "directory: kNamesMax");
  const int is_free = find(added.name) == NULL;
  answer(asks, is_free, added.mailbox);
  if (!is_free) return;
  g.names[g.name_count++] = added;
  for (size_t i = 0; i < g.clone_count;) {
    if (strcmp(g.clones[i].name, added.name) == 0) {
      answer(g.clones[i].mailbox, 1, added.mailbox);
      g.clones[i] = g.clones[--g.clone_count];
    } else {
      ++i;
    }
  }
}

static void serve_directory(void) {
  struct message* const m = g.request;
  if (m->busy > 0) return; /* nothing has come */
  int64_t values[4]; /* the request, the rank that asks, the tag of its mailbox, the tag for the answer */
  struct entry of = {.mailbox = {0, 0}};
  message_unpack(m, kMessageInt64, values, 4);
  message_unpack(m, kMessageChar, of.name, kMailboxNameMax);
  const struct mailbox asks = {(int)values[1], (uint64_t)values[3]};
  receive(kDirectoryTag, m);
  const struct entry* const known = find(of.name);
  if (values[0] == kCreate) {
    of.mailbox = (struct mailbox){(int)values[1], (uint64_t)values[2]};
    create(of, asks);
  } else if (known) {
    answer(asks, 1, known->mailbox);
  } else {
    must_hold(g.clone_count < kNamesMax, FI_ENOSPC, "directory: clones that wait");
    of.mailbox = asks;
    g.clones[g.clone_count++] = of;
  }
}

static struct mailbox* ask_directory(enum request request, const char* name) {
  char padded[kMailboxNameMax] = {0};
  must_hold(strlen(name) < sizeof padded, FI_EINVAL, "the name of a mailbox is too long");
  memcpy(padded, name, strlen(name));
  struct message *const out = message_create(), *const in = message_create();
  struct mailbox* const mailbox = malloc(sizeof *mailbox);
  must_hold(mailbox != NULL, FI_ENOMEM, "memory for a mailbox");
  enter();
  const int64_t tag = (int64_t)++g.tags, answer_tag = (int64_t)++g.tags;
  const int64_t values[] = {request, g.e.rank, tag, answer_tag};
  message_pack(out, kMessageInt64, values, 4);
  message_pack(out, kMessageChar, padded, sizeof padded);
  receive((uint64_t)answer_tag, in);
  post((struct mailbox){0, kDirectoryTag}, out);
  wait_for(in);
  leave();
  int64_t answers[3];
  message_unpack(in, kMessageInt64, answers, 3);
  must_hold(answers[0] != 0, FI_EADDRINUSE, name);
  *mailbox = (struct mailbox){(int)answers[1], (uint64_t)answers[2]};
  message_destroy(out);
  message_destroy(in);
  return mailbox;
}

struct mailbox* mailbox_create(const char* name) {
  return ask_directory(kCreate, name);
}
struct mailbox* mailbox_clone(const char* name) {
  return ask_directory(kClone, name);
}
void mailbox_destroy(struct mailbox* mailbox) { free(mailbox); }

void mailbox_post(struct mailbox* mailbox, struct message* m) {
  enter();
  post(*mailbox, m);
  leave();
}

void mailbox_retrieve(struct mailbox* mailbox, struct message* m) {
  must_hold(mailbox->rank == g.e.rank, FI_EPERM, "mailbox_retrieve: from a mailbox of another process");
  enter();
  wait_for(m);
  receive(mailbox->tag, m);
  wait_for(m);
  leave();
}

/* ---- begin and end ---- */

void mailbox_open(int argc, char** argv, const char* about) {
  endpoint_open(&g.e, argc, argv, about,
                (struct endpoint_options){.caps = FI_TAGGED,
                                          .arena_bytes = (size_t)kMessagesMax * kMessageBytes,
                                          .progress = FI_PROGRESS_MANUAL,
                                          .order = FI_ORDER_SAS});
  g.e.on_message = on_message;
  g.e.on_complete = on_complete;
  for (size_t i = 0; i < kMessagesMax; ++i) {
    g.messages[i].bytes = g.e.arena + i * kMessageBytes;
    semaphore_open(&g.messages[i].wake, 0);
  }
  if (g.e.rank == 0) {
    g.request = message_create();
    g.answer = message_create();
    receive(kDirectoryTag, g.request);
  }
}

/* Rank 0 serves its directory until all have come. */
void mailbox_close(void) {
  char mine = 0, all[1024];
  enter();
  endpoint_flush(&g.e);
  bootstrap_exchange(&g.e.bootstrap, &mine, all, 1, progress, NULL);
  endpoint_close(&g.e);
  leave();
}

/* ---- threads and semaphores ---- */

pthread_t thread_start(void* (*function)(void*), void* argument) {
  pthread_t thread;
  must(-pthread_create(&thread, NULL, function, argument), "pthread_create");
  return thread;
}

void thread_join(pthread_t thread) { must(-pthread_join(thread, NULL), "pthread_join"); }
void semaphore_open(sem_t* s, unsigned value) {
  must_hold(sem_init(s, 0, value) == 0, FI_EINVAL, "sem_init");
}
void semaphore_v(sem_t* s) { must_hold(sem_post(s) == 0, FI_EINVAL, "sem_post"); }

void semaphore_p(sem_t* s) {
  while (sem_wait(s) != 0) { /* a signal came: wait on */
  }
}
