// How long an acknowledgement waits for something to ride on, at most. The sender of a frame has to know which of the two
// it is at its peer: a tail loss probe that comes earlier repeats what was not lost.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

inline constexpr Duration kAckDelay = 25us;
/// Of an endpoint with FI_COLLECTIVE (wire/opening.h: kAcksLate): a member answers when the messages of all others have come. A barrier of
/// eight on two processors takes 110 us, twice that where others want these too.
inline constexpr Duration kAckDelayLate = 200us;
/// Of such a one with several rails: what each takes is measured by prompt acknowledgements.
inline constexpr Duration kAckDelayOfRails = 80us;

}  // namespace cluster::reliability
