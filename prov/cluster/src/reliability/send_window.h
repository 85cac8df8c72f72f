// The send window: every frame from the moment it is queued until the peer has it.
//
//      first                next               end
//   ----|--------------------|------------------|----
//       | in flight, lost    | queued: never    |
//       | or acknowledged    | sent yet         |
//
// `first` is the peer's cumulative acknowledgement. A frame keeps its sequence for life; each sending has a
// transmission number of its own. Frames that are taken for lost wait in a queue for their retransmission, in
// the order in which they were found lost; one that is acknowledged after all, or was sent again otherwise,
// leaves the queue when it comes to its front.
//
// A frame carries a body of its own, or is one of a run (FrameRun), which has none.
//
// Invariant: the front of that queue is a lost frame, so has_lost() need not look further.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/ring_queue.h"
#include "base/sequence.h"
#include "base/units.h"
#include "multipath/loss_detector.h"
#include "reliability/sent_frames.h"
#include "reliability/sequence_set.h"
#include "wire/ack.h"

namespace cluster::reliability {

/// Neighbours in a run that are acknowledged at once and left one after the other on one path, each once; or
/// one frame of a run for which that does not hold.
struct AckedStretch {
  multipath::AckedFrame frames;
  std::uint8_t path = 0;
  bool ordered = false;
  Sequence run_end;          ///< one after the last frame of the run
  carrier::Token token = 0;  ///< the run's, if the peer has all of it now
};

class SendWindow : public SentFrames {
 public:
  SendWindow(std::size_t capacity, Sequence first);

  Sequence next() const { return next_; }
  std::size_t queued() const { return static_cast<std::size_t>(end() - next_); }
  /// Frames sent and not acknowledged.
  std::size_t outstanding() const { return outstanding_count_; }
  /// The first of them; next() if there is none. What lies between first() and it was acknowledged by ranges.
  Sequence oldest() const { return outstanding_.next_member(first(), next_); }
  /// True if the peer has a frame beyond one that is missing there.
  bool has_gap() const { return outstanding_count_ < static_cast<std::size_t>(next_ - first()); }
  /// Bytes of memory it holds, those of the frames included.
  std::size_t footprint() const;
  /// True if a lost frame waits for its retransmission.
  bool has_lost() const { return !lost_.empty(); }
  /// True if frames with tokens are outstanding: an operation completes with their acknowledgement.
  bool tokens_outstanding() const { return with_tokens_ != 0; }
  bool is_outstanding(Sequence s) const {
    return !s.before(first()) && s.before(next_) && outstanding_.contains(s);
  }

  /// The frame has left again.
  void on_sent(Sequence s, TransmissionNumber transmission, Time now, std::uint8_t path = 0);
  /// The next `count` new frames have left, with transmission numbers from this one on.
  void on_new_sent(std::size_t count, TransmissionNumber transmission, Time now, std::uint8_t path);
  void mark_lost(Sequence s);
  /// Takes the next frame to retransmit from the queue of lost ones; there must be one.
  Sequence pop_lost();
  /// The link did not take what pop_lost() gave: it is still lost.
  void requeue_lost(Sequence s) { lost_.push_back(s); }

  /// False if no peer that keeps to the protocol can have acknowledged this.
  bool valid_ack(Sequence ack, const wire::Ack* ranges) const;
  /// Calls on_acked(sequence, frame) for each frame with a body that is acknowledged for the first time, and
  /// may be relieved of it, and on_run_acked(stretch) for those of runs. Costs one step per range, per body,
  /// per stretch and per 64 frames spanned, beside a few instructions per frame.
  template <typename OnAcked, typename OnRunAcked>
  void acknowledge(Sequence ack, const wire::Ack* ranges, OnAcked&& on_acked, OnRunAcked&& on_run_acked) {
    if (ack.after(first())) {
      acknowledge_range(first(), ack, on_acked, on_run_acked);
      set_first(ack);
    }
    for (std::size_t i = 0; ranges != nullptr && i < ranges->count; ++i) {
      const Sequence from = ranges->ranges[i].first;
      acknowledge_range(from.before(first()) ? first() : from, ranges->ranges[i].end, on_acked, on_run_acked);
    }
    drop_outdated_losses();
  }

 private:
  template <typename OnAcked, typename OnRunAcked>
  void acknowledge_range(Sequence from, Sequence end, OnAcked& on_acked, OnRunAcked& on_run_acked) {
    if (!from.before(end)) return;
    for (Sequence s = outstanding_.next_member(from, end); s != end; s = outstanding_.next_member(s, end)) {
      SentFrame& frame = at(s);
      if (frame.run != 0) {
        const AckedStretch stretch = remove_stretch(s, outstanding_.next_gap(s, end));
        on_run_acked(stretch);
        s = s + static_cast<std::uint32_t>(stretch.frames.count);
      } else {
        remove(s, frame);
        on_acked(s, frame);
        ++s;
      }
    }
  }
  void remove(Sequence s, SentFrame& frame);
  AckedStretch remove_stretch(Sequence s, Sequence end);
  void drop_outdated_losses();

  static constexpr std::int32_t kStaleAckMax = 65536;

  SequenceSet outstanding_;
  RingQueue<Sequence> lost_;
  Sequence next_;
  std::size_t outstanding_count_ = 0;
  std::size_t with_tokens_ = 0;
};

}  // namespace cluster::reliability
