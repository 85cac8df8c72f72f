/* Computing that takes `nanoseconds`: it sleeps, so that a machine with fewer processors than processes shows how a
 * program would scale on nodes of its own. */
#ifndef EXAMPLES_SHAPED_H
#define EXAMPLES_SHAPED_H

#include <time.h>

static inline void shaped_compute(double nanoseconds) {
  if (nanoseconds <= 0) return;
  const struct timespec length = {(time_t)(nanoseconds / 1e9),
                                  (long)(nanoseconds - 1e9 * (double)(time_t)(nanoseconds / 1e9))};
  nanosleep(&length, NULL);
}

#endif
