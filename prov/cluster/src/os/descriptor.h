// A file descriptor with one owner: closed when the owner goes, moved but never copied, so that no
// path through an error leaves one open.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <utility>

namespace cluster::os {

/// All that have an owner, so that a forked child can close them (os/fork_guard.h).
struct OwnedDescriptors {
  static void add(int number);
  static void remove(int number);
  static void close_all();
};

/// From now on this process may have as many descriptors as the hard limit says: each peer on this node takes one,
/// and the soft limit is 1024 nearly everywhere.
void raise_descriptor_limit();
/// True if this process may open so many more.
bool can_open(std::size_t descriptors);

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
  /// One that keeps a place free.
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

}  // namespace cluster::os
