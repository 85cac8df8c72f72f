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
    if (looks % kLooksPerGlance == 0) glance(looks);
  }
  /// Something.
  void renew() { looks_.store(0, std::memory_order_relaxed); }

 private:
  /// Applications yield between two looks, too, each time for as long as others like: so naps go by time. Who has
  /// just found something is in the middle of an exchange, which a nap would hold up by its length.
  void glance(std::uint32_t looks) {
    std::uint64_t rested = looks == kLooksPerGlance ? 0 : rested_.load(std::memory_order_relaxed);
    engine::Sleeper::nap_if_due(rested);
    rested_.store(rested, std::memory_order_relaxed);
    if (looks % kLooksPerYield == 0) engine::Sleeper::give_way(looks, kNever);
  }

  static constexpr std::uint32_t kLooksPerGlance = 32;
  static constexpr std::uint32_t kLooksPerYield = 32 * kLooksPerGlance;
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  /// In vain, in a row; imprecise if several threads look: it is a rhythm.
  std::atomic<std::uint32_t> looks_{0};
  std::atomic<std::uint64_t> rested_{0};  ///< when this row began, or since its last nap; in ticks
};

}  // namespace cluster::api
