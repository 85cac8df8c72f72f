/* What examples/mailbox promises and its programs do not show: a clone waits, messages of all sizes keep their order, one
 * message is posted to several mailboxes, several threads wait at one. With a fourth argument: an error that must end
 * the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mailbox/mailbox.h"

enum { kMessages = 200, kLong = 60000, kOnTheWay = 40, kBoxes = 5, kWaiting = 4 };

static int created; /* set before the mailbox "late" exists */

static void* clone_early(void* argument) {
  (void)argument;
  struct mailbox* const late = mailbox_clone("late");
  const int64_t wrong = !__atomic_load_n(&created, __ATOMIC_SEQ_CST);
  mailbox_destroy(late);
  return (void*)wrong;
}

static int clone_waits(void) {
  const struct timespec soon = {.tv_nsec = 100000000};
  void* wrong = NULL;
  if (mailbox_rank() != 0) return 0;
  const pthread_t thread = thread_start(clone_early, NULL);
  nanosleep(&soon, NULL);
  __atomic_store_n(&created, 1, __ATOMIC_SEQ_CST);
  mailbox_destroy(mailbox_create("late"));
  return pthread_join(thread, &wrong) != 0 || wrong != NULL;
}

static struct mailbox* of_rank(struct mailbox* open(const char* name), const char* kind, int rank) {
  char name[kMailboxNameMax];
  snprintf(name, sizeof name, "%s of %d", kind, rank);
  return open(name);
}

/* Short and long messages to the next process, in turns, which go by different protocols of the provider. Many are on
 * the way at a time. */
static void* post_in_order(void* to) {
  static char text[kLong];
  struct message* m[kOnTheWay];
  for (int i = 0; i < kOnTheWay; ++i) m[i] = message_create();
  for (int64_t i = 0; i < kMessages; ++i) {
    message_clear(m[i % kOnTheWay]);
    message_pack(m[i % kOnTheWay], kMessageInt64, &i, 1);
    message_pack(m[i % kOnTheWay], kMessageChar, text, i % 3 == 1 ? kLong : 8);
    mailbox_post(to, m[i % kOnTheWay]);
  }
  for (int i = 0; i < kOnTheWay; ++i) message_destroy(m[i]);
  return NULL;
}

static int keeps_order(void) {
  static char text[kLong];
  int wrong = 0;
  struct mailbox* const mine = of_rank(mailbox_create, "order", mailbox_rank());
  struct mailbox* const next = of_rank(mailbox_clone, "order", (mailbox_rank() + 1) % mailbox_size());
  const pthread_t thread = thread_start(post_in_order, next);
  struct message* const m = message_create();
  for (int64_t i = 0, number; i < kMessages; ++i) {
    mailbox_retrieve(mine, m);
    message_unpack(m, kMessageInt64, &number, 1);
    wrong += number != i || message_count(m) != (i % 3 == 1 ? kLong : 8);
    message_unpack(m, kMessageChar, text, message_count(m));
    wrong += message_count(m) != 0;
  }
  thread_join(thread);
  message_destroy(m);
  mailbox_destroy(mine);
  mailbox_destroy(next);
  return wrong;
}

static void* retrieve_one(void* from) {
  int64_t value = 0;
  char* const text = malloc(kLong);
  struct message* const m = message_create();
  mailbox_retrieve(from, m);
  message_unpack(m, kMessageChar, text, kLong);
  message_unpack(m, kMessageInt64, &value, 1);
  message_destroy(m);
  free(text);
  return (void*)value;
}

/* One long message goes to all mailboxes, and four times to one at which four threads wait. Then it is changed: what
 * came is what it was. */
static int posts_to_many(void) {
  static char text[kLong];
  const int64_t value = 4711, changed = 1;
  struct mailbox* boxes[kBoxes];
  pthread_t threads[kBoxes + kWaiting - 1];
  int wrong = 0;
  struct message* const m = message_create();
  message_pack(m, kMessageChar, text, kLong);
  message_pack(m, kMessageInt64, &value, 1);
  for (int i = 0; i < kBoxes; ++i) boxes[i] = of_rank(mailbox_create, "box", mailbox_rank() * kBoxes + i);
  struct mailbox* const next = of_rank(mailbox_clone, "box", (mailbox_rank() + 1) % mailbox_size() * kBoxes);
  for (int i = 0; i < kBoxes + kWaiting - 1; ++i)
    threads[i] = thread_start(retrieve_one, boxes[i < kBoxes ? i : 0]);
  for (int i = 1; i < kBoxes; ++i) mailbox_post(boxes[i], m);
  for (int i = 0; i < kWaiting; ++i) mailbox_post(next, m);
  message_clear(m);
  message_pack(m, kMessageChar, text, kLong);
  message_pack(m, kMessageInt64, &changed, 1);
  for (int i = 0; i < kBoxes + kWaiting - 1; ++i) {
    void* got = NULL;
    wrong += pthread_join(threads[i], &got) != 0 || (int64_t)got != value;
  }
  message_destroy(m);
  for (int i = 0; i < kBoxes; ++i) mailbox_destroy(boxes[i]);
  mailbox_destroy(next);
  return wrong;
}

static void cause(const char* error) {
  const int32_t three[3] = {1, 2, 3};
  static char text[kMessageBytes];
  int32_t values[3];
  struct message* const m = message_create();
  message_pack(m, kMessageInt32, three, 3);
  if (strcmp(error, "name") == 0) {
    mailbox_create("taken");
    mailbox_create("taken");
  }
  if (strcmp(error, "type") == 0) message_unpack(m, kMessageChar, values, 3);
  if (strcmp(error, "count") == 0) message_unpack(m, kMessageInt32, values, 2);
  if (strcmp(error, "long") == 0) message_pack(m, kMessageChar, text, sizeof text);
}

int main(int argc, char** argv) {
  mailbox_open(argc > 4 ? 4 : argc, argv, "What mailboxes promise.");
  if (argc > 4) cause(argv[4]);
  const int late = clone_waits(), order = keeps_order(), many = posts_to_many();
  if (late + order + many > 0)
    fprintf(stderr, "mailbox_rules, process %d: clones %d, order %d, many %d are wrong\n", mailbox_rank(),
            late, order, many);
  mailbox_close();
  return late + order + many > 0;
}
