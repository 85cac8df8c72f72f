// How long a process waits for other processes with which it shares a lock or a table. They usually finish at
// once. A stopped process never finishes, so the wait must end. On a crowded machine, each of many processes
// waits for a processor before it can finish. These waits add up, but there is progress.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace cluster::os {

class Patience {
 public:
  static constexpr Duration kWithoutProgress = 20s;
  static constexpr Duration kMax = 60s;

  /// `progress`: a number that changes whenever the other processes have made progress.
  Patience(Time now, std::uint64_t progress)
      : progress_(progress), end_(now + kWithoutProgress), last_end_(now + kMax) {}

  /// Returns true if there was no progress for kWithoutProgress, or if the wait has lasted for kMax.
  bool over(Time now, std::uint64_t progress) {
    if (progress != progress_) {
      progress_ = progress;
      end_ = now + kWithoutProgress;
    }
    return now >= end_ || now >= last_end_;
  }

 private:
  std::uint64_t progress_;
  Time end_;
  Time last_end_;
};

}  // namespace cluster::os
