// Simulates exhausted memory: the test program's operator new throws where a test says so. Only the thread
// that says it
// is concerned.
#pragma once

#include <cstddef>

namespace cluster::test {

/// While it lives, the next `allowed` allocations of this thread succeed and then `failures` allocations
/// fail.
class FailingMemory {
 public:
  static constexpr std::size_t kAlways = ~std::size_t{0};

  explicit FailingMemory(std::size_t allowed, std::size_t failures = kAlways);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// How many allocations failed, and how many more will succeed.
  static std::size_t failed();
  static std::size_t left();
};

/// What the world around the engines does meanwhile finds memory.
class SpareMemory {
 public:
  SpareMemory() : before_(used) { used = true; }
  ~SpareMemory() { used = before_; }
  SpareMemory(const SpareMemory&) = delete;
  SpareMemory& operator=(const SpareMemory&) = delete;

  static inline thread_local bool used = false;

 private:
  bool before_;
};

}  // namespace cluster::test
