/* A distributed shared memory in pages: processes on several nodes read and write one address space by ordinary
 * instructions. Home-based, with scope consistency, after JIAJIA (W. Hu, W. Shi, Z. Tang, "JIAJIA: a software DSM
 * system based on a new cache coherence protocol", HPCN Europe 1999); README.md says what that means for a program.
 *
 * One per process, used by one thread. Functions end the program, with the reason, on errors. */
#ifndef EXAMPLES_DSM_H
#define EXAMPLES_DSM_H

#include <stddef.h>

enum { kDsmLocks = 64, kDsmConditions = 16 };

struct dsm_statistics {
  size_t fetched_pages, written_pages; /* from their homes, and back to them as differences */
  size_t written_bytes, invalidated_pages;
};

/* Reads RANK SIZE HOST:PORT and opens a space of `bytes` bytes, at the same address in all processes. */
void dsm_open(int argc, char** argv, const char* about, size_t bytes);
/* All processes meet; what any of them wrote is in memory before that. */
void dsm_close(void);

/* Called by all processes in the same order: zeroed memory, in whole pages, of which each `block` bytes (rounded
 * up to pages) in turn have their home at process `first`, first + 1, ... */
void* dsm_alloc(size_t bytes, size_t block, int first);

/* After a barrier every process sees what any wrote before it. */
void dsm_barrier(void);
/* A process that got a lock sees what others wrote while they had that lock; nothing is said of other writes. Locks
 * may be held several at a time. */
void dsm_lock(int lock);
void dsm_unlock(int lock);

/* All processes meet, and nothing else: what they see of each other's writes stays as it was. */
void dsm_wait(void);
/* Conditions: a wait returns when the condition is set, at once if it is set already. Like dsm_wait, they say when, not
 * what is seen then. */
void dsm_set(int condition);
void dsm_reset(int condition);
void dsm_wait_set(int condition);

/* Ends all processes: this one now, with the reason, the others when they wait or share something next. */
void dsm_fail(const char* reason);

int dsm_rank(void);
int dsm_size(void);
struct dsm_statistics dsm_statistics(void);

double dsm_seconds(void); /* since dsm_open */
/* Prints the line that all examples print: how long, and what went over the network. For all to call. */
void dsm_report(const char* what, double seconds, int wrong);

#endif
