// Measures how much memory an engine holds. Every allocation that is made while the engine works is charged
// to a meter. The meter is credited when any component frees the memory. For this purpose the simulator
// replaces operator new and operator delete. The library does not notice this.
#pragma once

#include <cstddef>

namespace cluster::sim {

class AllocationMeter {
 public:
  std::size_t bytes() const { return bytes_; }
  std::size_t peak() const { return peak_; }

  void add(std::size_t size) {
    bytes_ += size;
    if (bytes_ > peak_) peak_ = bytes_;
  }
  void remove(std::size_t size) { bytes_ -= size; }

  /// While this object lives, allocations are charged to `memory`, or to no meter if `memory` is null. Such
  /// objects may be nested.
  class Scope {
   public:
    explicit Scope(AllocationMeter* memory);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    AllocationMeter* before_;
  };

 private:
  std::size_t bytes_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace cluster::sim
