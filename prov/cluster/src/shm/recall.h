// A carrier whose segments stay in shared memory until the receiver takes them. The sender sees which
// segments were taken, and can take back the others. So the sender does not depend on a receiver that has
// stopped polling.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "carrier/carrier.h"
#include "wire/segment.h"

namespace cluster::shm {

class Recall : public carrier::Carrier {
 public:
  using Carrier::Carrier;

  /// Segments are numbered in the order in which they are posted. Numbers wrap around.
  using Number = std::uint32_t;

  /// Posts a whole write. Does the same as post() with this segment, in fewer steps.
  virtual bool post_write(const wire::WriteHeader& header, const Gather& payload) = 0;

  /// Returns true if the receiver is known to have taken all segments. A receiver that has taken the last
  /// segment perhaps says so only when it polls again.
  virtual bool drained() const = 0;

  /// Returns the number that the next posted segment will have.
  virtual Number next() const = 0;
  /// Returns the number of the first segment that the receiver has not taken, as far as this side knows.
  /// Between hold() and resume() the number is exact.
  virtual Number taken() = 0;
  /// Returns how many segments can wait until they are taken.
  virtual Number capacity() const = 0;
  /// Returns true if the receiver has taken this segment and refused it. Returns true only once for each
  /// refusal. The segment must be one of the last capacity() segments.
  virtual bool take_refusal(Number segment) = 0;

  /// Holds the receiver, so that it cannot take segments until the caller calls resume(). Returns false if
  /// the receiver is taking segments now, or has broken the rules. In this case the receiver is not held, and
  /// the caller need not call resume().
  virtual bool hold() = 0;
  /// Returns the payload of a segment that was not taken. Called between hold() and resume().
  virtual ConstBytes payload(Number segment) const = 0;
  /// Makes the segment ineffective, so that the receiver only skips it. Called between hold() and resume().
  virtual void withdraw(Number segment) = 0;
  virtual void resume() = 0;
};

}  // namespace cluster::shm
