// Unpredictable bits from the kernel, fetched a buffer at a time. All engines of a process share them. A
// forked child discards the inherited buffer: two processes must never draw the same session identity.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/environment.h"
#include "base/lock.h"

namespace cluster::os {

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;

 private:
  void refill();

  SpinLock lock_;
  std::array<std::uint64_t, 32> buffer_{};  // 256 bytes, which getrandom delivers whole
  std::size_t left_ = 0;
  unsigned generation_ = 0;  ///< of the process that has filled the buffer
};

}  // namespace cluster::os
