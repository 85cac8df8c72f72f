// A mark that one thread at a time bears, and gives back also by ending: a thread that is cancelled in its sleep runs no code
// of ours any more. Taking it is no waiting; it guards no data.
#pragma once

#include <pthread.h>

#include <cerrno>

namespace cluster::os {

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

  /// False: another thread bears it.
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
