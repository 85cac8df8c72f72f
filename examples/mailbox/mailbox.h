/* Mailboxes with names, after DECK, a communication and threads layer for clusters (Porto Alegre), on fi_tsend and
 * fi_trecv. A process creates a mailbox under a name and retrieves messages from it; every process that clones it by
 * that name may post to it. README.md says what is promised.
 *
 * All threads of a process may use everything at once, except that a message belongs to one thread at a time.
 * Functions end the program, with the reason, on errors. */
#ifndef EXAMPLES_MAILBOX_H
#define EXAMPLES_MAILBOX_H

#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  kMailboxNameMax = 64, /* with the 0 at its end */
  kMessageBytes = 65536,
  kMessagesMax = 256 /* of a process at a time */
};

/* Reads RANK SIZE HOST:PORT, and meets all other processes. */
void mailbox_open(int argc, char** argv, const char* about);
/* Called by one thread when the others have ended. All processes meet. */
void mailbox_close(void);
int mailbox_rank(void);
int mailbox_size(void);

/* ---- messages: values with their types, up to kMessageBytes ---- */

struct message;
enum message_type { kMessageChar, kMessageInt32, kMessageInt64, kMessageDouble };

struct message* message_create(void);
void message_destroy(struct message* m);
/* Makes it empty. Waits until the posts of it no longer need its bytes. */
void message_clear(struct message* m);
/* Adds `count` values as one item. An item costs 8 bytes, and is rounded up to 8. */
void message_pack(struct message* m, enum message_type type, const void* values, size_t count);
/* Takes the next item, which must have this type and count. */
void message_unpack(struct message* m, enum message_type type, void* values, size_t count);
/* How many values the next item has; 0 after the last. */
size_t message_count(const struct message* m);

/* ---- mailboxes ---- */

struct mailbox;

/* The name is free, in all processes. */
struct mailbox* mailbox_create(const char* name);
/* Waits until the mailbox is created. */
struct mailbox* mailbox_clone(const char* name);
/* Frees the handle; the name stays taken, and messages on the way stay on the way. */
void mailbox_destroy(struct mailbox* mailbox);
/* Returns at once. The message may be posted again, but is changed only after message_clear(). */
void mailbox_post(struct mailbox* mailbox, struct message* m);
/* Waits for a message; for the creator. What `m` had is lost. */
void mailbox_retrieve(struct mailbox* mailbox, struct message* m);

/* ---- threads and semaphores: those of POSIX, with their errors looked at ---- */

pthread_t thread_start(void* (*function)(void*), void* argument);
void thread_join(pthread_t thread);
void semaphore_open(sem_t* s, unsigned value);
void semaphore_p(sem_t* s); /* waits until the value is not 0, and takes 1 off */
void semaphore_v(sem_t* s);

#ifdef __cplusplus
}
#endif

#endif
