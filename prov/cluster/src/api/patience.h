// Of whoever looks again and again. A reader that finds nothing for so long shares its processor: with more
// ranks than processors the one that has something to say would else wait for the end of this one's time
// slice.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/sleeper.h"

namespace cluster::api {

class Patience {
 public:
  /// Nothing found, once more.
  void wear() {
    const std::uint32_t looks = looks_.load(std::memory_order_relaxed) + 1;
    looks_.store(looks, std::memory_order_relaxed);
    if (looks % kLooksPerYield == 0) engine::Sleeper::give_way(looks, kLooksPerNap);
  }
  /// Something.
  void renew() { looks_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kLooksPerYield = 1000;
  static constexpr std::uint32_t kLooksPerNap = 8 * kLooksPerYield;
  /// In vain, in a row; imprecise if several threads look: it is a rhythm.
  std::atomic<std::uint32_t> looks_{0};
};

}  // namespace cluster::api
