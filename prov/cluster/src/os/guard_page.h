// A page that tells an address space from every other (os/process_memory.h): it lies at a random place
// of a range that Linux gives to no process by itself, 2^33 pages wide, and holds a secret. No later process
// has it by accident, whatever number it is given and whatever it maps; neither has a child of fork() or the
// same process after exec().
#pragma once

#include <cstdint>
#include <utility>

#include "base/environment.h"

namespace cluster::os {

/// What another process must know of the page.
struct GuardMark {
  std::uint64_t address = 0;  ///< of the secret; 0: none
  std::uint64_t value = 0;

  /// What writes copy to: nothing reads it.
  std::uint64_t write_address() const { return address + 64; }
};

class GuardPage {
 public:
  /// Empty if the address space has no free place for it.
  static GuardPage open(Random& random);
  GuardPage() = default;
  GuardPage(GuardPage&& other) noexcept : mark_(std::exchange(other.mark_, {})) {}
  GuardPage& operator=(GuardPage&& other) noexcept {
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~GuardPage();

  explicit operator bool() const { return mark_.address != 0; }
  const GuardMark& mark() const { return mark_; }

 private:
  explicit GuardPage(const GuardMark& mark) : mark_(mark) {}

  GuardMark mark_;
};

}  // namespace cluster::os
