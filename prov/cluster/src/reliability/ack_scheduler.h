// When to acknowledge. At once when the peer needs the news (a gap, a gap filled, a frame that came
// again), otherwise after a number of frames or the configured delay, whichever comes first. Any data frame
// on its way to the peer takes the acknowledgement along for nothing.
//
// A peer that waits for it gets it within kReplyWait, if that is when our answers come: an exchange of
// messages then needs no frames of acknowledgement. But who computes with what it has received looks at the
// network only when that is done, and the peer would stand still meanwhile: so after an answer that came
// late, or not at all, the next ones get their acknowledgement at once, until data follows one within
// kReplyGrace. (The idea is that of the "pingpong mode" of TCP stacks.)
#pragma once

#include <cstdint>

#include "base/sequence.h"
#include "base/units.h"

namespace cluster::reliability {

class AckScheduler {
 public:
  enum class Urgency : std::uint8_t { none, soon, now };
  explicit AckScheduler(Duration delay) : delay_(delay) {}

  /// A sequenced frame, new or not, has been fetched; `at`: when it had come to this node.
  void arrived(Time now, Time at, Sequence transmission, bool ordered, Urgency urgency);
  /// True once a frame of the peer has arrived: there is something to say.
  bool anything() const { return anything_; }
  bool owed() const { return due_ != kNever; }
  /// All that had been fetched by then was acknowledged then.
  Time said_at() const { return said_at_; }
  bool due(Time now) const { return now >= due_; }
  Time deadline() const { return due_; }
  /// What says it all went out: data, or a frame of its own.
  void sent(Time now, bool alone);

  /// The number of frames received in vain that the peer was last told.
  std::uint32_t spurious_reported() const { return spurious_reported_; }
  void set_spurious_reported(std::uint32_t count) { spurious_reported_ = count; }

  Sequence newest() const { return newest_; }
  Time newest_arrived() const { return newest_at_; }

 private:
  static constexpr Duration kReplyWait = 10us;
  static constexpr Duration kReplyGrace = 25us;  ///< more: the lone frame itself has delayed the answer
  static constexpr unsigned kOrderedMax = 16;
  static constexpr unsigned kUnorderedMax = 8;

  Duration delay_;
  bool anything_ = false;
  Sequence newest_;
  Time newest_at_{};
  Time due_ = kNever;
  Time said_at_{};
  bool awaited_ = false;       ///< the peer waits for what is owed
  bool answers_soon_ = true;   ///< the last awaited one found data to take it along, or could have
  Time answered_if_before_{};  ///< data sent by then could have taken along the last one that went alone
  std::uint32_t spurious_reported_ = 0;
  unsigned ordered_ = 0;  ///< arrived since the last acknowledgement
  unsigned unordered_ = 0;
};

}  // namespace cluster::reliability
