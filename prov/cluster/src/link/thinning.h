// What a link keeps out during a flood: frames that belong to no session of a peer that is known, before they cost the
// endpoint anything. A link cannot look up sessions; it looks at one byte, the mark: the lowest of the number in the header. Each
// endpoint gives all numbers of sessions that it names to peers in its address vector one mark, those that it names to others
// another, both drawn at random: hosts that cannot see its frames do not know them.
#pragma once

#include <cstdint>

namespace cluster::link {

struct SessionMarks {
  std::uint8_t member = 1;    ///< of sessions with peers in the address vector
  std::uint8_t unknown = 2;  ///< of all others: any host gets to know it by asking for a session
  // Neither is 0, the number of no session, and they differ.
};

inline std::uint32_t with_mark(std::uint32_t number, std::uint8_t mark) { return (number & ~0xFFu) | mark; }

/// Of each class of frames one in 2^shift is let through, at random; those of members all are.
struct Thinning {
  SessionMarks marks;
  unsigned unknown_shift = 0;
  unsigned unmarked_shift = 0;  ///< session 0, which is where sessions begin, sessions of other endpoints, and nonsense

  static constexpr unsigned kShiftMax = 10;
  bool none() const { return unknown_shift == 0 && unmarked_shift == 0; }
};

}  // namespace cluster::link
