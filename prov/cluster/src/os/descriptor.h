// A file descriptor with one owner. The owner's destructor closes it; code can move but not copy it. So no
// error path leaves one open.
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

/// Raises the soft limit of descriptors to the hard limit: each peer on this node takes one, and the soft
/// limit is 1024 nearly everywhere.
void raise_descriptor_limit();
/// True if this process can open that many more.
bool can_open(std::size_t descriptors);

// Texts about a system call that failed. If the call reached a limit that the administrator sets, the text
// names the remedy.

/// Describes an errno: "Address already in use", "Too many open files: raise ulimit -n".
std::string error_text(int error);
/// Describes the system call that has just failed with errno: "bind: Address already in use".
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
  /// Returns a descriptor that only reserves a place among the descriptors of the process.
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

/// A forked child must not keep the descriptors of its parent. Otherwise the parent's ports, names and
/// connections would outlive the parent, and its peers would wait for a dead process. So the fork guard
/// closes these descriptors in the child before fork() returns there. The child must neither use nor destroy
/// what is left of the parent's objects (base/process_generation.h). A child made without fork handlers
/// (vfork, clone) keeps the descriptors until exec() closes them; so peers on this node watch the process
/// itself (os/peer_process.h).
struct ForkHandlers {
  void (*prepare)();
  void (*in_parent)();
  void (*in_child)();
};

/// Installs the handlers for the life of the process. Further calls have no effect.
void install_fork_guard(const ForkHandlers& handlers);

}  // namespace cluster::os
