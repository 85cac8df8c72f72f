// A file descriptor with one owner: it is closed when the owner goes, and moves but is never copied. So no path through an error
// leaves one open.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

namespace cluster::os {

/// All descriptors that have an owner, so that a forked child can close them.
struct OwnedDescriptors {
  static void add(int number);
  static void remove(int number);
  static void close_all();
};

/// Raises the soft limit of descriptors to the hard limit: each peer on this node takes one, and the soft limit is 1024 nearly
/// everywhere.
void raise_descriptor_limit();
/// True if this process can open that many more.
bool can_open(std::size_t descriptors);

// What the system says of a call that failed. Where a limit that the administrator sets was reached, the text names the cure.

/// "Address already in use", "Too many open files: raise ulimit -n".
std::string error_text(int error);
/// "bind: Address already in use": a system call has just failed with errno.
std::string failed(const char* call);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) { OwnedDescriptors::add(number); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }
  /// One that reserves a place among the descriptors of the process.
  static Descriptor spare();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset() {
    if (number_ < 0) return;
    OwnedDescriptors::remove(number_);
    ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// What fork() must not do: leave a child with the descriptors of its parent. Through them the parent's ports, names and connections
/// would outlive it, and its peers would wait for a dead process. So the guard closes them in the child before fork() returns
/// there. The child must neither use nor destroy what is left of the parent's objects (base/process_generation.h). A child made
/// without fork handlers (vfork, clone) keeps the descriptors until exec() closes them; so peers on this node watch the process
/// itself (os/peer_process.h).
struct ForkHandlers {
  void (*prepare)();
  void (*in_parent)();
  void (*in_child)();
};

/// Installs them for the life of the process; only the first call counts.
void install_fork_guard(const ForkHandlers& handlers);

}  // namespace cluster::os
