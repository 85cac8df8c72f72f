// How long an acknowledgement waits, at most, for a frame that can carry it. The sender has to know the limit
// of its peer: a tail loss probe that leaves earlier retransmits a frame that was not lost.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

inline constexpr Duration kAckDelay = 25us;
/// The limit of an endpoint with FI_COLLECTIVE (wire/opening.h: kAcksLate). A member of a group answers once
/// the messages of all others have come. A barrier of eight on two processors takes 110 us, and 220 us where
/// other processes want these processors too.
inline constexpr Duration kAckDelayLate = 200us;
/// The same for an endpoint with several rails. Prompt acknowledgements measure how much each rail takes.
inline constexpr Duration kAckDelayOfRails = 80us;

}  // namespace cluster::reliability
