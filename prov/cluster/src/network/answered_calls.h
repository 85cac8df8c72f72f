// Calls that have just been answered in a flood. The sender of a flood need not make new frames: copies of a few hundred
// would use up the answers that peers wait for, and cost this endpoint one each. A peer that did not get its answer calls again at kUntilAgain at the
// latest, and by then its call is new again.
//
// A digest that meets another one in its place takes it: then a copy is answered once more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/units.h"

namespace cluster::network {

class AnsweredCalls {
 public:
  static constexpr Duration kUntilAgain = 250ms;

  /// `digest`: keyed, so that no host can choose its place.
  bool answered(Time now, std::uint64_t digest) const {
    if (calls_ == nullptr) return false;
    const Call& call = (*calls_)[digest % kCalls];
    return call.digest == digest && now < call.at + kUntilAgain;
  }
  /// Throws bad_alloc the first time.
  void note(Time now, std::uint64_t digest) {
    if (calls_ == nullptr) calls_ = std::make_unique<std::array<Call, kCalls>>();
    (*calls_)[digest % kCalls] = {digest, now};
  }

 private:
  static constexpr std::size_t kCalls = 2048;  ///< a few times what is answered in kUntilAgain
  struct Call {
    std::uint64_t digest = 0;
    Time at{};
  };

  std::unique_ptr<std::array<Call, kCalls>> calls_;  ///< null: there was no flood yet
};

}  // namespace cluster::network
