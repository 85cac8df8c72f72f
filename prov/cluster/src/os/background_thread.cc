#include "os/background_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>

namespace cluster::os {
namespace {

int create(pthread_t& thread, std::size_t stack_bytes, void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

int start_background_thread(const char* name, std::size_t stack_bytes, void* (*run)(void*), void* argument) {
  // Signals are delivered to threads of the application.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = create(thread, stack_bytes, run, argument);
  // Thread-local storage of the application alone may take more than `stack_bytes`.
  if (error == EINVAL) error = create(thread, 0, run, argument);
  if (error == 0) pthread_setname_np(thread, name);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace cluster::os
