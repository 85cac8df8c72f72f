// Cancelled threads (pthread_cancel). At a cancellation point, which many functions of the C library are, a thread that was
// cancelled ends: in the midst of whatever called that function, and without its locks being released.
//
// Rule: a call of the provider ends its thread only while it sleeps, that is in WaitSet::sleep and
// sleep_shortest_cancellable, where it holds nothing. Everywhere else the cancellation stays pending: the linker leads
// every call of a cancellation point through cancellation_points.cc, which puts it off. Code of other libraries that may
// reach one (libfabric's log, libcrypto) is called with a PutOffCancellation in scope. So a call that makes no
// system call pays nothing.
#pragma once

#include <pthread.h>

namespace cluster::os {

class PutOffCancellation {
 public:
  PutOffCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~PutOffCancellation() { pthread_setcancelstate(before_, nullptr); }
  PutOffCancellation(const PutOffCancellation&) = delete;
  PutOffCancellation& operator=(const PutOffCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace cluster::os
