// Two descriptor numbers that the process keeps in reserve, for a moment in which no other number is free.
// All endpoints share these numbers, because an endpoint needs them only for the time of one call.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "os/descriptor.h"

namespace cluster::os {

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

}  // namespace cluster::os
