// Protects the provider when an application cancels a thread (pthread_cancel). Many functions of the C
// library are cancellation points: a cancelled thread ends inside such a function. The callers of the
// function do not continue, and the mutexes that they hold stay locked.
//
// Rule: a thread inside the provider may end only while it sleeps in WaitSet::sleep or
// sleep_shortest_cancellable, where it holds no lock. Everywhere else the cancellation stays pending. For
// this purpose, the linker redirects the provider's calls of cancellation points to cancellation_points.cc,
// which puts the cancellation off. Other libraries (libfabric's log, libcrypto's initialization) may also
// reach a cancellation point. Where the provider calls such a function of another library, a
// PutOffCancellation is in scope. A call of libfabric that reaches no cancellation point has no extra cost.
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

/// A mark that at most one thread holds. A thread that is cancelled while it sleeps cannot give the mark
/// back. Therefore the mark also becomes free when the thread that holds it ends. No thread waits for the
/// mark, and the mark protects no data.
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
