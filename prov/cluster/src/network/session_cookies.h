// Numbers of sessions that nothing is kept of. While many sources ask for sessions, what a half-open one would cost is
// not spent: the number that is named to a caller is a keyed hash of its opening and of the time (RFC 4987 3.6, RFC 9000
// 8.1.2). A frame that names it carries that opening again and so proves what a kept number would have proved.
//
// A number is good for as long as the interval in which it was named, and the next one.
#pragma once

#include <array>
#include <cstdint>

#include "base/environment.h"
#include "base/siphash.h"
#include "base/units.h"
#include "network/session_secrets.h"
#include "wire/admit.h"

namespace cluster::network {

class SessionCookies {
 public:
  /// `mark`: the lowest byte of all these numbers.
  SessionCookies(Random& random, std::uint8_t mark) : hash_{random.next(), random.next()}, mark_(mark) {}

  std::uint32_t session_for(Time now, const wire::Opening& caller) {
    named_until_ = now + 2 * kInterval;
    return number(interval(now), caller);
  }
  /// True if the frame names the number that was named to its sender.
  bool named(Time now, const wire::FrameView& view) const {
    if (now >= named_until_ || !view.has_opening) return false;
    const std::uint64_t at = interval(now);
    return view.session == number(at, view.opening) || view.session == number(at - 1, view.opening);
  }

 private:
  static constexpr Duration kInterval = 2s;

  static std::uint64_t interval(Time now) {
    return static_cast<std::uint64_t>(now.time_since_epoch() / kInterval);
  }
  std::uint32_t number(std::uint64_t at, const wire::Opening& caller) const {
    return SessionSecrets::with_mark(static_cast<std::uint32_t>(hash_of(at, caller)), mark_);
  }
  std::uint64_t hash_of(std::uint64_t at, const wire::Opening& caller) const {
    const std::array<std::uint64_t, 4> name = caller.name.words(caller.session);
    return hash_(std::array<std::uint64_t, 6>{name[0], name[1], name[2], name[3], caller.epoch, at});
  }

  SipHash hash_;
  std::uint8_t mark_;
  Time named_until_{};  ///< no number that was named is good later
};

}  // namespace cluster::network
