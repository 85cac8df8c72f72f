/* A master and many workers: how many primes there are below a limit. Every process has some threads that work, each
 * with a mailbox of its own. Process 0 has two more: one gives tasks to workers that ask, one collects what they
 * found. Each of these threads waits at another mailbox. A semaphore keeps the tasks under way at twice the number of
 * workers: who collects a result lets one more task out.
 *
 * farm RANK SIZE HOST:PORT [WORKERS]: so many threads work in each process (default: 3). */
#include <stdio.h>
#include <stdlib.h>

#include "mailbox.h"

enum { kWorkersMax = 256, kTasks = 400, kNumbers = 500, kPrimes = 17984 /* below kTasks * kNumbers */ };

static int workers_each = 3;
static sem_t may_give;

static int is_prime(int64_t n) {
  if (n < 2) return 0;
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return 0;
  }
  return 1;
}

/* A worker asks by its number; a task of -1 is the end. */
static void* work(void* argument) {
  const int32_t me = mailbox_rank() * workers_each + *(const int*)argument;
  char name[kMailboxNameMax];
  snprintf(name, sizeof name, "worker %d", (int)me);
  struct mailbox *const tasks = mailbox_create(name), *const requests = mailbox_clone("requests"),
                        *const results = mailbox_clone("results");
  struct message* const m = message_create();
  for (;;) {
    message_clear(m);
    message_pack(m, kMessageInt32, &me, 1);
    mailbox_post(requests, m);
    mailbox_retrieve(tasks, m);
    int64_t task, result[2] = {0, 0};
    message_unpack(m, kMessageInt64, &task, 1);
    if (task < 0) break;
    for (int64_t n = task * kNumbers; n < (task + 1) * kNumbers; ++n) result[1] += is_prime(n);
    result[0] = task;
    message_clear(m);
    message_pack(m, kMessageInt64, result, 2);
    mailbox_post(results, m);
  }
  message_destroy(m);
  mailbox_destroy(tasks);
  mailbox_destroy(requests);
  mailbox_destroy(results);
  return NULL;
}

/* The mailbox of a worker is cloned when it asks for the first time. */
static void* give_tasks(void* requests) {
  const int workers = mailbox_size() * workers_each;
  struct mailbox** const known = calloc((size_t)workers, sizeof *known);
  if (known == NULL) exit(1);
  struct message* const m = message_create();
  for (int64_t given = 0; given < kTasks + workers; ++given) {
    int32_t worker;
    mailbox_retrieve(requests, m);
    message_unpack(m, kMessageInt32, &worker, 1);
    char name[kMailboxNameMax];
    snprintf(name, sizeof name, "worker %d", (int)worker);
    if (known[worker] == NULL) known[worker] = mailbox_clone(name);
    if (given < kTasks) semaphore_p(&may_give);
    const int64_t task = given < kTasks ? given : -1;
    message_clear(m);
    message_pack(m, kMessageInt64, &task, 1);
    mailbox_post(known[worker], m);
  }
  message_destroy(m);
  for (int i = 0; i < workers; ++i) mailbox_destroy(known[i]);
  free(known);
  return NULL;
}

/* Returns how many tasks came not exactly once, or 1 if the sum is wrong. */
static int collect(struct mailbox* results) {
  char came[kTasks] = {0};
  int64_t primes = 0;
  int wrong = 0;
  struct message* const m = message_create();
  for (int i = 0; i < kTasks; ++i) {
    int64_t result[2];
    mailbox_retrieve(results, m);
    message_unpack(m, kMessageInt64, result, 2);
    wrong += came[result[0]]++;
    primes += result[1];
    semaphore_v(&may_give);
  }
  message_destroy(m);
  if (primes != kPrimes) ++wrong;
  if (wrong > 0) fprintf(stderr, "farm: %d errors, %lld primes\n", wrong, (long long)primes);
  if (wrong == 0)
    printf("farm: %d workers in %d processes, %d tasks, %lld primes\n", workers_each * mailbox_size(),
           mailbox_size(), kTasks, (long long)primes);
  return wrong;
}

int main(int argc, char** argv) {
  if (argc == 5) workers_each = atoi(argv[--argc]);
  if (workers_each < 1 || workers_each > kWorkersMax) {
    fprintf(stderr, "farm: WORKERS is 1 to %d\n", kWorkersMax);
    return 2;
  }
  mailbox_open(argc, argv, "Tasks for threads of all processes, by mailboxes.");
  pthread_t workers[kWorkersMax], giver = 0;
  int numbers[kWorkersMax], wrong = 0;
  for (int i = 0; i < workers_each; ++i) {
    numbers[i] = i;
    workers[i] = thread_start(work, &numbers[i]);
  }
  if (mailbox_rank() == 0) {
    semaphore_open(&may_give, (unsigned)(2 * workers_each * mailbox_size()));
    struct mailbox *const requests = mailbox_create("requests"), *const results = mailbox_create("results");
    giver = thread_start(give_tasks, requests);
    wrong = collect(results);
    thread_join(giver);
    mailbox_destroy(requests);
    mailbox_destroy(results);
  }
  for (int i = 0; i < workers_each; ++i) thread_join(workers[i]);
  mailbox_close();
  return wrong > 0;
}
