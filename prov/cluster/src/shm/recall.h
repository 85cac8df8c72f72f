// A carrier whose segments lie in memory until their receiver takes them. The sender sees which have been taken, and can
// take back the others: so it does not depend on a receiver that has stopped looking.
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

  /// True if the receiver has given everything back. It stays false as long as a receiver that has taken everything makes
  /// no further call.
  virtual bool drained() const = 0;

  /// Of the segment that is posted next.
  virtual Number next() const = 0;
  /// The receiver has taken all segments before this one, as far as it has said; exact between hold() and
  /// resume().
  virtual Number taken() = 0;
  /// Most segments that are not taken.
  virtual Number capacity() const = 0;
  /// True, once, if the receiver has taken this segment, one of the last capacity(), and did not do what it
  /// asks for.
  virtual bool take_refusal(Number segment) = 0;

  /// Keeps the receiver from taking segments until resume(). False: it is taking some now, and was not kept.
  virtual bool hold() = 0;
  /// In between: the payload of a segment that is not taken.
  virtual ConstBytes payload(Number segment) const = 0;
  /// In between: the segment becomes one without effect.
  virtual void withdraw(Number segment) = 0;
  virtual void resume() = 0;
};

}  // namespace cluster::shm
