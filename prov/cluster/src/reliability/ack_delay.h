// An acknowledgement may wait for a data frame that can carry it, but no longer than the limits below. A
// sender must know the limit of its peer. Otherwise the sender's tail loss probe might leave before the
// acknowledgement arrives, and retransmit a frame that was not lost.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

inline constexpr Duration kAckDelay = 25us;
/// The limit of an endpoint with FI_COLLECTIVE (wire/opening.h: kAcksLate). In a collective operation, a
/// member replies only after it has received the messages of all other members. So the frame that can carry
/// the acknowledgement leaves late. A barrier of eight ranks on two processors takes 110 us, or 220 us if
/// other processes compete for the processors.
inline constexpr Duration kAckDelayLate = 200us;
/// The limit of an endpoint with FI_COLLECTIVE and several rails. It is shorter than kAckDelayLate, because
/// the sender measures the capacity of each rail by the acknowledgements, and a long delay would distort the
/// measurement.
inline constexpr Duration kAckDelayOfRails = 80us;

}  // namespace cluster::reliability
