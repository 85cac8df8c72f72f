// How long an acknowledgement waits for something to ride on, at most. The sender of a frame has to know which of the two
// it is at its peer: a tail loss probe that comes earlier repeats what was not lost.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

inline constexpr Duration kAckDelay = 25us;
/// Of an endpoint with FI_COLLECTIVE: a member answers one message of an operation when those of the others have come as well,
/// which ranks that share processors send one after the other: a barrier of eight of them on two processors takes 110 us, twice that
/// where others want these too. Its openings say so (wire/opening.h: kAcksLate).
inline constexpr Duration kAckDelayLate = 200us;
/// Of such a one with several rails, as its opening says as well: what each of them takes is measured by acknowledgements that are
/// prompt (multipath/path_recovery.h).
inline constexpr Duration kAckDelayOfRails = 80us;

}  // namespace cluster::reliability
