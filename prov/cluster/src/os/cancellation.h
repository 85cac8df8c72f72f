// Cancelled threads (pthread_cancel). Many functions of the C library are cancellation points. A cancelled
// thread ends there, in the midst of whatever called that function, and its locks stay locked.
//
// Rule: a thread inside the provider may end only while it sleeps in WaitSet::sleep or
// sleep_shortest_cancellable, where it holds nothing. Everywhere else the cancellation stays pending. The
// linker redirects every call of a cancellation point to cancellation_points.cc, which puts the cancellation
// off. Code of other libraries that may reach a cancellation point (libfabric's log, libcrypto) runs with a
// PutOffCancellation in scope. So a call that makes no system call pays nothing.
#pragma once

#include <pthread.h>

#include <cerrno>

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

/// A mark that one thread at a time holds. A thread gives the mark back even by ending, because a thread that
/// is cancelled in its sleep runs none of our code any more. Nobody waits for the mark, and it guards no
/// data.
class RobustMark {
 public:
  RobustMark() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~RobustMark() { pthread_mutex_destroy(&mutex_); }
  RobustMark(const RobustMark&) = delete;
  RobustMark& operator=(const RobustMark&) = delete;

  /// Takes the mark. Returns false if another thread holds it.
  bool try_take() {
    const int error = pthread_mutex_trylock(&mutex_);
    if (error == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    return error == 0 || error == EOWNERDEAD;
  }
  void give_back() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace cluster::os
