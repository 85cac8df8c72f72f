// Who the sessions of one process have turned out to be with, as a bystander sees it: a frame that names a
// session of ours and brings the peer's opening claims to be from its partner, and what is sent to the
// session in that opening shows that the engine believes it. From then on whatever names the same session
// with another opening comes from a life that is over, or from one that has not been introduced, and must be
// refused.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/bytes.h"
#include "link/link.h"

namespace cluster::sim {

class SessionPartners {
 public:
  /// The engine looks at a frame.
  void read(ConstBytes frame);
  /// The engine sends one.
  void sent(const link::OutFrame& frame);
  /// How many frames it had to refuse since this was asked last.
  std::uint64_t take_strangers();

 private:
  std::unordered_map<std::uint32_t, std::uint32_t>
      claimed_by_;  ///< a session of ours: the first that named it
  std::unordered_map<std::uint32_t, std::uint32_t>
      claims_;  ///< a session of a peer: the one of ours it named
  std::unordered_map<std::uint32_t, std::uint32_t>
      partners_;  ///< of ours: the peer's that the engine believes
  std::uint64_t strangers_ = 0;
};

}  // namespace cluster::sim
