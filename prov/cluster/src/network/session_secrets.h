// What this endpoint puts into the sessions that it names so that others cannot guess them: a token for each, and the mark by which the
// kernel tells sessions of members (link/link.h). All are hashes under one key, so nothing is kept for sessions that are
// named and not kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/address.h"
#include "base/environment.h"
#include "base/siphash.h"
#include "base/units.h"
#include "wire/admit.h"

namespace cluster::network {

class SessionSecrets {
 public:
  explicit SessionSecrets(const SipHash& hash) : hash_(hash) {
    const std::array<std::uint64_t, 1> words{std::uint64_t{1}
                                             << 32};  // the token of no session: those have 32 bits
    const std::uint64_t bits = hash(words);
    member_mark_ = static_cast<std::uint8_t>(1 + (bits & 0xFFFFFFFF) % 255);
    const auto other = static_cast<std::uint8_t>(1 + (bits >> 32) % 254);
    other_mark_ = other < member_mark_ ? other : static_cast<std::uint8_t>(other + 1);
  }

  /// What the opening of that session says and its peer has to repeat. It goes to the address of that name, and is worth
  /// nothing in another: a host that collects tokens of the sessions named to it learns none of those named to others.
  std::uint64_t token_of(std::uint32_t session, const SocketAddress& name) const {
    return std::max<std::uint64_t>(hash_(name.words(session)), 1);
  }
  /// The lowest byte of each session with a peer in the address vector; never 0.
  std::uint8_t member_mark() const { return member_mark_; }
  /// That of each other session; never 0 either. Always the same: else a host could collect sessions and see what never comes.
  std::uint8_t other_mark() const { return other_mark_; }
  static std::uint32_t with_mark(std::uint32_t number, std::uint8_t mark) { return (number & ~0xFFu) | mark; }

  /// The number of a session that nothing is kept of. While many sources ask for sessions, what a half-open one would cost is not spent:
  /// the number that is named to a caller is a keyed hash of its opening and of the time (RFC 4987 3.6, RFC 9000 8.1.2). A frame that names
  /// it carries that opening again and so proves what a kept number would have proved. It is good as long as the interval in which it was
  /// named, and the next one.
  std::uint32_t cookie_for(Time now, const wire::Opening& caller) {
    named_until_ = now + 2 * kInterval;
    return cookie(interval(now), caller);
  }
  /// True if the frame names the number that was named to its sender so.
  bool named(Time now, const wire::FrameView& view) const {
    if (now >= named_until_ || !view.has_opening) return false;
    const std::uint64_t at = interval(now);
    return view.session == cookie(at, view.opening) || view.session == cookie(at - 1, view.opening);
  }

 private:
  static constexpr Duration kInterval = 2s;

  static std::uint64_t interval(Time now) {
    return static_cast<std::uint64_t>(now.time_since_epoch() / kInterval);
  }
  std::uint32_t cookie(std::uint64_t at, const wire::Opening& caller) const {
    const std::array<std::uint64_t, 4> name = caller.name.words(caller.session);
    const std::array<std::uint64_t, 6> words{name[0], name[1], name[2], name[3], caller.epoch, at};
    return with_mark(static_cast<std::uint32_t>(hash_(words)), other_mark_);
  }

  SipHash hash_;
  std::uint8_t member_mark_;
  std::uint8_t other_mark_;
  Time named_until_{};  ///< no number that was named is good later
};

}  // namespace cluster::network
