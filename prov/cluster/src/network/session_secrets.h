// What this endpoint puts into the sessions that it names so that others cannot guess them: a token for each, and the mark by which the
// kernel tells sessions of members (link/thinning.h). All are hashes under one key, so nothing is kept for sessions that are
// named and not kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/address.h"
#include "base/siphash.h"

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
  /// The lowest byte of each other session; never 0 either. Any host gets to see it by asking for a session. It is always the same byte:
  /// if it were drawn anew each time, a host could collect sessions and see which byte never comes.
  std::uint8_t other_mark() const { return other_mark_; }
  static std::uint32_t with_mark(std::uint32_t number, std::uint8_t mark) { return (number & ~0xFFu) | mark; }

 private:
  SipHash hash_;
  std::uint8_t member_mark_;
  std::uint8_t other_mark_;
};

}  // namespace cluster::network
