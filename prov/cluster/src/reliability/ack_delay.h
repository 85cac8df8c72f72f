// An acknowledgement may wait for a data frame that can carry it, for at most one of the times below. A
// sender must know this limit of its peer. Otherwise the sender's tail loss probe might leave before the
// acknowledgement arrives, and retransmit a frame that was not lost.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

inline constexpr Duration kAckDelay = 25us;
/// The limit of an endpoint with FI_COLLECTIVE and one rail (wire/opening.h: kAcksLate). In many collective
/// operations, a member replies only after it has received messages of other members. So the frame that can
/// carry the acknowledgement leaves late. A barrier of eight ranks on two processors takes 110 us, or 220 us
/// if other processes compete for the processors.
inline constexpr Duration kAckDelayLate = 200us;
/// The limit of an endpoint with FI_COLLECTIVE and several rails. It is shorter than kAckDelayLate, because
/// the sender of the data measures the capacity of each rail by the acknowledgements. A long delay would
/// distort this measurement.
inline constexpr Duration kAckDelayOfRails = 80us;

}  // namespace cluster::reliability
