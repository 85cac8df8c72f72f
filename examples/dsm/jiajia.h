/* The calls of JIAJIA on dsm.h, for programs that were written for it. They mean what JIAJIA says; README.md names
 * the few that are missing.
 *
 * JIAJIA starts the processes itself, by a file .jiahosts. Here somebody else does: the first words of every process
 * are RANK SIZE HOST:PORT, and those of the program come after them (with getopt, set optind = 4). */
#ifndef EXAMPLES_JIAJIA_H
#define EXAMPLES_JIAJIA_H

#include <stdarg.h>
#include <stdio.h>

#include "dsm.h"

#ifndef JIA_SPACE
#define JIA_SPACE (128u << 20) /* bytes of shared memory */
#endif

#define jiapid dsm_rank()
#define jiahosts dsm_size()

static inline void jia_init(int argc, char** argv) {
  dsm_open(argc > 4 ? 4 : argc, argv, "A program for JIAJIA. Its own options come after HOST:PORT.",
           JIA_SPACE);
}

static inline void jia_exit(void) { dsm_close(); }

/* `size` bytes, of which each `block` bytes in turn have their home at process `first` and those after it. Shared
 * memory is zero at the beginning. As in JIAJIA, addresses are numbers. */
static inline unsigned long jia_alloc3(int size, int block, int first) {
  return (unsigned long)dsm_alloc((size_t)size, (size_t)block, first);
}

static inline unsigned long jia_alloc2(int size, int block) { return jia_alloc3(size, block, 0); }
/* All at one process: that one, process 0, or another one at each call. */
static inline unsigned long jia_alloc2p(int size, int process) { return jia_alloc3(size, size, process); }
static inline unsigned long jia_alloc1(int size) { return jia_alloc3(size, size, 0); }

static inline unsigned long jia_alloc(int size) {
  static int next = 0;
  return jia_alloc3(size, size, next++ % jiahosts);
}

static inline void jia_error(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  dsm_fail(text);
}

/* Locks 0 to 63. What a process wrote while it had the lock is seen by the next that has it. */
static inline void jia_lock(int lock) {
  if (lock < 0 || lock >= kDsmLocks) jia_error("jia_lock: there is no lock %d", lock);
  dsm_lock(lock);
}

static inline void jia_unlock(int lock) { dsm_unlock(lock); }

/* All processes see what any wrote before. */
static inline void jia_barrier(void) { dsm_barrier(); }

/* All processes meet; nothing is said of what they see. The same holds for conditions, 0 to 15. */
static inline void jia_wait(void) { dsm_wait(); }

static inline int jia_checked_condition(int condition) {
  if (condition < 0 || condition >= kDsmConditions) jia_error("there is no condition variable %d", condition);
  return condition;
}

static inline void jia_setcv(int condition) { dsm_set(jia_checked_condition(condition)); }
static inline void jia_resetcv(int condition) { dsm_reset(jia_checked_condition(condition)); }
static inline void jia_waitcv(int condition) { dsm_wait_set(jia_checked_condition(condition)); }

/* Seconds since jia_init. */
static inline float jia_clock(void) { return (float)dsm_seconds(); }

#endif
