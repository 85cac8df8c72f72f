// Computes the secrets that make the sessions of this endpoint impossible to guess. Each session has a token
// and a mark. The kernel recognizes the sessions of members by the mark (link/link.h). All secrets are hashes
// under one key, so this endpoint needs no memory for a session that it has only named.
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
    // No token has this input, because session numbers have 32 bits.
    const std::array<std::uint64_t, 1> words{std::uint64_t{1} << 32};
    const std::uint64_t bits = hash(words);
    member_mark_ = static_cast<std::uint8_t>(1 + (bits & 0xFFFFFFFF) % 255);
    const auto other = static_cast<std::uint8_t>(1 + (bits >> 32) % 254);
    other_mark_ = other < member_mark_ ? other : static_cast<std::uint8_t>(other + 1);
    incarnation_ = static_cast<std::uint16_t>(1 + (bits >> 40) % 0xFFFF);
  }

  /// Returns the token of a session. Our opening carries the token, and the peer has to repeat it. The
  /// opening goes to the address of `name`, and the token is valid for that name only. So a host that
  /// collects tokens for its own names learns nothing about the tokens of others.
  std::uint64_t token_of(std::uint32_t session, const SocketAddress& name) const {
    return std::max<std::uint64_t>(hash_(name.words(session)), 1);
  }
  /// Returns the lowest byte of each session number that belongs to a peer in the address vector. It is never
  /// 0.
  std::uint8_t member_mark() const { return member_mark_; }
  /// Returns the lowest byte of every other session number. This byte is never 0 either. All these numbers
  /// end in the same byte. With random bytes, a host could collect session numbers and see which byte never
  /// occurs: the mark of members.
  std::uint8_t other_mark() const { return other_mark_; }
  static std::uint32_t with_mark(std::uint32_t number, std::uint8_t mark) { return (number & ~0xFFu) | mark; }

  /// Returns the number of this incarnation in our openings. It is random, and never 0.
  std::uint16_t incarnation() const { return incarnation_; }

  /// Returns a session number for a caller without storing a session. This avoids the cost of half-open
  /// sessions while many sources ask for a session. The number is a keyed hash of the caller's opening and of
  /// the time (RFC 4987 3.6, RFC 9000 8.1.2). A frame that names the session carries the same opening again.
  /// From this opening, the endpoint can verify the number as reliably as if it had stored the number. The
  /// number is valid in the current time interval and in the next one.
  std::uint32_t cookie_for(Time now, const wire::Opening& caller) {
    named_until_ = now + 2 * kInterval;
    return cookie(interval(now), caller);
  }
  /// Returns true if the frame names a number that cookie_for() has returned for its sender.
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
  std::uint16_t incarnation_;
  Time named_until_{};  ///< no number named so far is valid after this
};

}  // namespace cluster::network
