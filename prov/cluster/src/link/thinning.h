// What a link does during a flood of frames that belong to no session of a peer. A link cannot look up sessions. It looks at one byte,
// the mark: the lowest of the session in the header. Each endpoint draws its mark at random and gives it to all sessions that it names
// to peers in its address vector. Hosts that cannot see those frames do not know the mark.
//
// What costs most in a frame is that it wakes a process. So during a flood frames without the mark go to a place aside, which wakes
// nothing. The endpoint reads it by time, and the kernel drops what finds it full. There wait calls (session 0), frames of sessions
// with unknown sources, and all that is forged. Frames with the mark pass.
//
// Most keep-alives go to the keep-alive responder, with the mark or without, and the responder bounds what they cost. So a peer whose
// calls find no space learns that this process lives. Nothing that any host can draw from the endpoint in a flood depends on the mark:
// otherwise a host could find it by trying all 255.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace cluster::link {

struct Thinning {
  std::uint8_t mark = 1;
  bool on = false;  ///< frames without the mark wait aside

  static constexpr Duration kAsideInterval = 5ms;  ///< between two looks aside
  static constexpr std::size_t kAsideFrames = 24;  ///< of one look
  /// Of keep-alives one in 2^shift waits aside, which shows that a flood of them goes on.
  static constexpr unsigned kKeepAliveShift = 2;

  bool operator==(const Thinning&) const = default;
};

}  // namespace cluster::link
