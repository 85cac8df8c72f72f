// Unpredictable random numbers from the kernel, fetched one buffer at a time. A forked child discards the
// buffer that it has inherited, because two processes must never use the same session identity.
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
  // 256 bytes, because getrandom() always fills a buffer of at most this size.
  std::array<std::uint64_t, 32> buffer_{};
  std::size_t left_ = 0;
  unsigned generation_ = 0;  ///< generation of the process that filled the buffer
};

}  // namespace cluster::os
