// How much memory an engine holds: every allocation made while it works is booked to its account, and
// taken off again when it is freed, whoever frees it. The simulator replaces operator new for this;
// the library knows nothing of it.
#pragma once

#include <cstddef>

namespace cluster::sim {

class MemoryAccount {
 public:
  std::size_t bytes() const { return bytes_; }
  std::size_t peak() const { return peak_; }

  void book(std::size_t size) {
    bytes_ += size;
    if (bytes_ > peak_) peak_ = bytes_;
  }
  void unbook(std::size_t size) { bytes_ -= size; }

  /// Allocations between its beginning and its end go to `account` (null: to nobody). Nests.
  class Scope {
   public:
    explicit Scope(MemoryAccount* account);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MemoryAccount* before_;
  };

 private:
  std::size_t bytes_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace cluster::sim
