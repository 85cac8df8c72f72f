// A Descriptor owns a file descriptor. Its destructor closes the file descriptor, so error paths need not
// close it. A Descriptor can be moved but not copied.
#pragma once

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace cluster::os {

/// Records all descriptors that have an owner, so that a forked child can close them.
struct OwnedDescriptors {
  static void add(int number);
  static void remove(int number);
  static void close_all();
};

/// Sets the soft limit of descriptors to the hard limit, or to 2^20 if the hard limit is higher. The process
/// needs one descriptor for each peer on this node, and nearly every system has a soft limit of 1024.
void raise_descriptor_limit();
/// Makes the kernel's table of this process's descriptors large enough for kDescriptorsReserved descriptors,
/// or for as many as the soft limit allows. If a process has several threads, a call that needs a larger table
/// waits until all processors have passed through the scheduler (synchronize_rcu). On a crowded node this took
/// 23 s, and the waiting thread could hold the lock of an engine. Therefore the table grows before the
/// provider starts its first thread, when the kernel need not wait.
void reserve_descriptor_table();
inline constexpr int kDescriptorsReserved = 4096;
/// Returns true if this process can now open `descriptors` more descriptors.
bool can_open(std::size_t descriptors);

// The two functions below describe a failed system call. If the call failed because of a limit that the
// administrator can change, the text says how to raise this limit.

/// Returns a text for an errno, for example "Address already in use" or "Too many open files: raise ulimit
/// -n".
std::string error_text(int error);
/// Returns a text about the system call that has just failed, for example "bind: Address already in use".
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
  /// Opens /dev/null, only to reserve a descriptor number that the process can use later.
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

/// Two descriptor numbers that the process keeps in reserve, for a moment in which no other number is free.
/// All endpoints share these numbers, because an endpoint needs them only for the time of one call.
class SpareDescriptors {
 public:
  /// Returns the reserve of this process. When the last user drops the reserve, the descriptors are closed.
  static std::shared_ptr<SpareDescriptors> of_process();

  /// Calls `use`. During the call, the numbers in reserve are free. If the reserve has no number, returns
  /// false and does not call `use`.
  template <typename Use>
  bool lend(const Use& use) {
    const std::lock_guard guard(mutex_);
    reserve();
    if (!spares_[0]) return false;
    for (Descriptor& spare : spares_) spare.reset();
    use();
    reserve();
    return true;
  }

 private:
  SpareDescriptors() { reserve(); }
  void reserve();

  std::mutex mutex_;  ///< keeps other endpoints of this process from taking the freed numbers
  std::array<Descriptor, 2> spares_;
};

/// A forked child must not keep the descriptors of its parent. Otherwise the parent's ports, names and
/// connections would outlive the parent, and the parent's peers would wait for a dead process. Therefore the
/// fork guard closes the child's copies of these descriptors before fork() returns in the child. The child
/// must neither use nor destroy its copies of the parent's objects (base/process_generation.h). vfork and
/// clone create a child without calling fork handlers. Such a child keeps the descriptors until exec() closes
/// them. For this reason peers on this node also watch the process itself (os/peer_process.h).
struct ForkHandlers {
  void (*prepare)();
  void (*in_parent)();
  void (*in_child)();
};

/// Installs the handlers for the rest of the process's life. Later calls have no effect.
void install_fork_guard(const ForkHandlers& handlers);

}  // namespace cluster::os
