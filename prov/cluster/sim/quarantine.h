// Keeps buffers for a while that the library has given back, to detect late writes. The buffers are filled
// with poison, so a late read shows, too: it would send the poison.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "base/bytes.h"

namespace cluster::sim {

class Quarantine {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;
  /// So many bytes of a long buffer are watched.
  static constexpr std::size_t kWatchedMax = 16 * 1024;

  /// Poisons the first `size` bytes of the buffer and keeps it. Throws SafetyFailure if a buffer that is no
  /// longer kept was written meanwhile.
  void take(Buffer buffer, std::size_t size);
  /// Throws SafetyFailure if any buffer has been written since it was given back.
  void check() const;

 private:
  static constexpr std::size_t kBuffersMax = 16;

  struct Kept {
    Buffer buffer;
    std::size_t size;
  };
  static void check(const Kept& kept);

  std::deque<Kept> kept_;
};

}  // namespace cluster::sim
