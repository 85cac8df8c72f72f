// A carrier whose segments lie in memory until their receiver takes them. The sender sees which segments were
// taken, and can take back the others. So the sender does not depend on a receiver that has stopped polling.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "carrier/carrier.h"

namespace cluster::shm {

class Recall : public carrier::Carrier {
 public:
  using Carrier::Carrier;

  /// Segments are numbered in the order they are posted; numbers wrap around.
  using Number = std::uint32_t;

  /// True if the receiver has given everything back. A receiver that has taken everything may give the last
  /// segments back only at its next call.
  virtual bool drained() const = 0;

  /// The number of the segment that is posted next.
  virtual Number next() const = 0;
  /// The number of the first segment that the receiver has not taken, as far as the receiver has said. The
  /// number is exact between hold() and resume().
  virtual Number taken() = 0;
  /// The most segments that can wait to be taken.
  virtual Number capacity() const = 0;
  /// Returns true, once, if the receiver has taken this segment and refused it. The segment must be one of
  /// the last capacity().
  virtual bool take_refusal(Number segment) = 0;

  /// Keeps the receiver from taking segments until resume(). Returns false if the receiver is taking some now
  /// and goes on.
  virtual bool hold() = 0;
  /// Between hold() and resume(): the payload of a segment that was not taken.
  virtual ConstBytes payload(Number segment) const = 0;
  /// Between hold() and resume(): makes the segment one without effect.
  virtual void withdraw(Number segment) = 0;
  virtual void resume() = 0;
};

}  // namespace cluster::shm
