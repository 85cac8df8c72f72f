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
// Invariant: the front of that queue is a lost frame, so has_lost() need not look further.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/ring_queue.h"
#include "base/sequence.h"
#include "base/units.h"
#include "reliability/frame_body.h"
#include "reliability/sequence_set.h"
#include "wire/ack.h"

namespace cluster::reliability {

/// One frame of the window, sent or still queued (sent_packets in RFC 9002).
struct SentFrame {
  enum class State : std::uint8_t { queued, in_flight, lost, acknowledged };

  std::unique_ptr<FrameBody> body;  ///< null once acknowledged
  Time sent_at{};                   ///< the latest sending
  TransmissionNumber transmission;  ///< the latest sending
  std::uint32_t sendings = 0;
  State state = State::queued;
  std::uint8_t path = 0;  ///< of the latest sending
};

class SendWindow {
 public:
  /// At most so many frames at once; memory is taken as it is needed.
  explicit SendWindow(std::size_t capacity);

  Sequence first() const { return first_; }
  Sequence next() const { return next_; }
  Sequence end() const { return end_; }
  std::size_t queued() const { return static_cast<std::size_t>(end_ - next_); }
  /// Frames sent that, as far as is known, have neither arrived nor been lost.
  std::size_t in_flight() const { return in_flight_; }
  /// Frames sent and not acknowledged.
  std::size_t outstanding() const { return outstanding_count_; }
  /// The first of them; next() if there is none. What lies between first() and it was acknowledged by ranges.
  Sequence oldest() const { return outstanding_.next_member(first_, next_); }
  /// True if the peer has a frame beyond one that is missing there.
  bool has_gap() const { return outstanding_count_ < static_cast<std::size_t>(next_ - first_); }
  /// Bytes of memory it holds, those of the frames included.
  std::size_t footprint() const;
  /// True if a lost frame waits for its retransmission.
  bool has_lost() const { return !lost_.empty(); }
  /// True if frames with tokens are outstanding: an operation completes with their acknowledgement.
  bool tokens_outstanding() const { return with_tokens_ != 0; }
  bool has_space(std::size_t frames) const {
    return static_cast<std::size_t>(end_ - first_) + frames <= capacity_;
  }
  bool is_outstanding(Sequence s) const {
    return !s.before(first_) && s.before(next_) && outstanding_.contains(s);
  }

  SentFrame& at(Sequence s) { return frames_[s.value & mask_]; }
  const SentFrame& at(Sequence s) const { return frames_[s.value & mask_]; }

  /// Queues a frame behind all others; there must be space.
  void push(std::unique_ptr<FrameBody> body);
  /// The frame has left (again, or as the next new one).
  void on_sent(Sequence s, TransmissionNumber transmission, Time now, std::uint8_t path = 0);
  void mark_lost(Sequence s);
  /// Takes the next frame to retransmit from the queue of lost ones; there must be one.
  Sequence pop_lost();
  /// The link did not take what pop_lost() gave: it is still lost.
  void requeue_lost(Sequence s) { lost_.push_back(s); }

  /// False if no peer that keeps to the protocol can have acknowledged this.
  bool valid_ack(Sequence ack, const wire::Ack* ranges) const;
  /// Calls on_acked(sequence, frame) for each frame that is acknowledged for the first time; the visitor may
  /// take its body. Costs one step per range, per new frame and per 64 frames spanned.
  template <typename OnAcked>
  void acknowledge(Sequence ack, const wire::Ack* ranges, OnAcked&& on_acked) {
    if (ack.after(first_)) {
      acknowledge_range(first_, ack, on_acked);
      first_ = ack;
    }
    for (std::size_t i = 0; ranges != nullptr && i < ranges->count; ++i) {
      const Sequence from = ranges->ranges[i].first;
      acknowledge_range(from.before(first_) ? first_ : from, ranges->ranges[i].end, on_acked);
    }
    drop_outdated_losses();
  }

 private:
  template <typename OnAcked>
  void acknowledge_range(Sequence from, Sequence end, OnAcked& on_acked) {
    if (!from.before(end)) return;
    for (Sequence s = outstanding_.next_member(from, end); s != end;
         s = outstanding_.next_member(s + 1, end)) {
      SentFrame& frame = at(s);
      remove(s, frame);
      on_acked(s, frame);
    }
  }
  void remove(Sequence s, SentFrame& frame);
  void drop_outdated_losses();

  static constexpr std::size_t kInitialFrames = 16;
  static constexpr std::int32_t kStaleAckMax = 65536;

  std::size_t capacity_;
  std::vector<SentFrame> frames_;
  std::uint32_t mask_;
  SequenceSet outstanding_;
  RingQueue<Sequence> lost_;
  Sequence first_;
  Sequence next_;
  Sequence end_;
  std::size_t in_flight_ = 0;
  std::size_t outstanding_count_ = 0;
  std::size_t with_tokens_ = 0;
};

}  // namespace cluster::reliability
