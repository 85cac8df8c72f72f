// When to acknowledge. At once when the peer needs the news (a gap, a gap filled, a frame that came
// again); if it waits for it, within kSoon after a short question, whose answer is on its way by then, and
// at once after more, with which one computes: that answer would come when the computing is over, and the
// peer would stand still meanwhile. Otherwise after a number of frames or the configured delay, whichever
// comes first. Any data frame on its way to the peer takes the acknowledgement along for nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sequence.h"
#include "base/units.h"

namespace cluster::reliability {

class AckBuilder {
 public:
  enum class Urgency : std::uint8_t { none, soon, now };
  static constexpr std::size_t kQuestionMax = 1088;  ///< bytes of segments: the largest injected message

  explicit AckBuilder(Duration delay) : delay_(delay) {}

  /// How urgent it is for a peer that waits, after a frame with that many bytes of segments.
  static Urgency awaited(std::size_t bytes) { return bytes <= kQuestionMax ? Urgency::soon : Urgency::now; }

  /// A sequenced frame arrived, new or not.
  void arrived(Time now, Sequence transmission, bool ordered, Urgency urgency);
  /// True once a frame of the peer has arrived: there is something to say.
  bool anything() const { return anything_; }
  bool owed() const { return due_ != kNever; }
  bool due(Time now) const { return now >= due_; }
  Time deadline() const { return due_; }
  /// A frame that says it all went out.
  void sent();

  /// The number of frames received in vain that the peer was last told.
  std::uint32_t in_vain_said() const { return in_vain_said_; }
  void say_in_vain(std::uint32_t count) { in_vain_said_ = count; }

  Sequence newest() const { return newest_; }
  /// Age of the newest arrival as the header has it.
  std::uint16_t delay_field(Time now) const;

 private:
  static constexpr Duration kSoon = 4us;
  static constexpr unsigned kOrderedMax = 16;
  static constexpr unsigned kUnorderedMax = 8;

  Duration delay_;
  bool anything_ = false;
  Sequence newest_;
  Time newest_at_{};
  Time due_ = kNever;
  std::uint32_t in_vain_said_ = 0;
  unsigned ordered_ = 0;  ///< arrived since the last acknowledgement
  unsigned unordered_ = 0;
};

}  // namespace cluster::reliability
