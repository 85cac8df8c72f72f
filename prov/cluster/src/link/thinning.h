// What a link does with a flood of frames that belong to no session of a peer that is known, before they cost the endpoint
// anything. A link cannot look up sessions; it looks at one byte, the mark: the lowest of the number in the header. Each
// endpoint gives all numbers of sessions that it names to peers in its address vector one mark, those that it names to others
// another, both drawn at random: hosts that cannot see its frames do not know them.
//
// What costs most in a frame is that it wakes a process. So frames without mark, of which every session begins, go to a place
// aside, which wakes nothing and is emptied by time; what finds it full is dropped. All that a peer says without a mark it says in
// session 0: the rest is useless here, and only a part of it gets that far, of which a reset tells peers of an earlier process.
//
// A host that learns the mark of members all the same gains little: where too many frames have it that no session takes, those of
// the sessions that there are pass, and of all others a part.
//
// A peer whose calls find no space learns from the keep-alive responder that this process lives: most keep-alives go there, with a
// mark or without, and it bounds what they cost by itself. Nothing that any host can draw from the endpoint in a flood depends on the
// mark: else it could be found by trying all 255.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace cluster::link {

struct SessionMarks {
  std::uint8_t member = 1;   ///< of sessions with peers in the address vector
  std::uint8_t unknown = 2;  ///< of all others: any host gets to know it by asking for a session
  // Neither is 0, the number of no session, and they differ.

  bool operator==(const SessionMarks&) const = default;
};

inline std::uint32_t with_mark(std::uint32_t number, std::uint8_t mark) { return (number & ~0xFFu) | mark; }

/// Frames in sessions of members are let through.
struct Thinning {
  SessionMarks marks;
  unsigned unknown_shift = 0;   ///< of those with the other mark one in 2^shift is let through, at random
  bool unmarked_aside = false;  ///< all others (session 0, sessions of other endpoints, nonsense) wait aside
  unsigned member_shift =
      0;  ///< of those with the mark of members, but in none of their sessions, one in 2^shift
  std::vector<std::uint32_t> members =
      {};  ///< their sessions, in ascending order; empty while that shift is 0

  static constexpr unsigned kShiftMax = 10;
  static constexpr Duration kAsideInterval = 5ms;  ///< between two looks aside
  static constexpr std::size_t kAsideFrames = 24;  ///< of one look
  static constexpr unsigned kUselessShift = 2;     ///< of useless frames one in 2^shift waits aside
  static constexpr unsigned kKeepAliveShift =
      2;  ///< of keep-alives one in 2^shift, which shows that a flood of them goes on

  /// Sessions of members that a link distinguishes: with more of them all frames with their mark pass.
  static constexpr std::size_t kMembersMax = 1024;

  bool none() const { return unknown_shift == 0 && member_shift == 0 && !unmarked_aside; }
  bool operator==(const Thinning&) const = default;
};

}  // namespace cluster::link
