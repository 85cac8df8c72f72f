// What this endpoint puts into the sessions that it names so that others cannot guess them: a token for each, and marks by which
// the kernel can tell its sessions (link/thinning.h). All are hashes under one key, so nothing is kept for sessions that are
// named and not kept.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/address.h"
#include "base/siphash.h"
#include "link/thinning.h"

namespace cluster::network {

class SessionSecrets {
 public:
  explicit SessionSecrets(const SipHash& hash) : hash_(hash), marks_(marks_from(hash)) {}

  /// What the opening of that session says and its peer has to repeat. It goes to the address of that name, and is worth
  /// nothing in another: a host that collects tokens of the sessions named to it learns none of those named to others.
  std::uint64_t token_of(std::uint32_t session, const SocketAddress& name) const {
    return std::max<std::uint64_t>(hash_(name.words(session)), 1);
  }
  const link::SessionMarks& marks() const { return marks_; }

 private:
  /// The token of no session: their numbers have 32 bits.
  static link::SessionMarks marks_from(const SipHash& hash) {
    const std::array<std::uint64_t, 1> words{std::uint64_t{1} << 32};
    const std::uint64_t bits = hash(words);
    const auto member = static_cast<std::uint8_t>(1 + (bits & 0xFFFFFFFF) % 255);
    const auto other = static_cast<std::uint8_t>(1 + (bits >> 32) % 254);
    return {member, other < member ? other : static_cast<std::uint8_t>(other + 1)};
  }

  SipHash hash_;
  link::SessionMarks marks_;
};

}  // namespace cluster::network
