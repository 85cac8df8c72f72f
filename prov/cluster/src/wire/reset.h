// The reset block: proof that the sender of a reset has seen the frame it refuses, so that a host that cannot
// read the traffic cannot end a session by guessing.
#pragma once

#include <cstdint>

#include "wire/endian.h"

namespace cluster::wire {

enum class ResetReason : std::uint8_t {
  unknown_session = 1,  ///< the refused frame's session is closed or unknown; `epoch` is where this
                        ///< incarnation's sessions begin
  stale_epoch = 2,      ///< the refused opening is older than one already seen; `epoch` is that one
};

/// As it lies on the wire, behind a header whose session is 0.
struct ResetBlock {
  std::uint8_t reason;
  std::uint8_t reserved[3];
  Le32 session;  ///< these three: of the frame that was refused
  Le32 sequence;
  Le32 transmission;
  Le64 epoch;
};
static_assert(sizeof(ResetBlock) == 24);

}  // namespace cluster::wire
