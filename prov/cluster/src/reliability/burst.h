// The frames of one call of a link, built in place: kBurstMax of them are too many bytes to be cleared for
// every call.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <type_traits>

#include "link/link.h"

namespace cluster::reliability {

class Burst {
 public:
  /// A new empty frame behind the others; at most link::kBurstMax.
  link::OutFrame& add() { return *new (storage_ + sizeof(link::OutFrame) * count_++) link::OutFrame; }
  link::OutFrame& front() { return *std::launder(reinterpret_cast<link::OutFrame*>(storage_)); }
  std::span<const link::OutFrame> frames() const {
    return {std::launder(reinterpret_cast<const link::OutFrame*>(storage_)), count_};
  }

 private:
  static_assert(std::is_trivially_destructible_v<link::OutFrame>);

  alignas(link::OutFrame) std::byte storage_[sizeof(link::OutFrame) * link::kBurstMax];
  std::size_t count_ = 0;
};

}  // namespace cluster::reliability
