#include "os/detached_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace cluster::os {
namespace {

// This size includes the stack that the C library needs to write a log line.
constexpr std::size_t kStackBytes = 256 * 1024;

int create_thread(pthread_t& thread, std::size_t stack_bytes, void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack_bytes != 0) pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

int start_detached_thread(void* (*run)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = create_thread(thread, kStackBytes, run, argument);
  // pthread_create refuses a stack that is too small for the thread-local storage of the application.
  if (error == EINVAL) error = create_thread(thread, 0, run, argument);
  if (error == 0) pthread_setname_np(thread, "cluster-thread");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void close_aside(Descriptor descriptor) {
  if (!descriptor) return;
  auto closing = std::unique_ptr<Descriptor>(new (std::nothrow) Descriptor(std::move(descriptor)));
  if (closing == nullptr) return;  // no constructor ran, so `descriptor` still owns and closes the socket
  const auto close = [](void* its) -> void* {
    delete static_cast<Descriptor*>(its);
    return nullptr;
  };
  if (start_detached_thread(close, closing.get()) == 0) closing.release();
}

}  // namespace cluster::os
