// The send window holds every frame from the moment it is queued until the peer has it.
//
//      first                next               end
//   ----|--------------------|------------------|----
//       | in flight, lost    | queued: never    |
//       | or acknowledged    | sent yet         |
//
// `first` is the peer's cumulative acknowledgement. A frame keeps its sequence for life; each transmission
// has a number of its own. Lost frames wait in a queue for their retransmission, in the order in which they
// were found lost. A frame that has been acknowledged or retransmitted meanwhile leaves the queue when it
// reaches the front.
//
// Invariants: a frame has a body, or belongs to a run that describes it (FrameRun). A run stays until all of
// its frames are acknowledged, so there are never more runs than frames. The front of the lost queue is a
// lost frame, so has_lost() looks no further.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/ring_queue.h"
#include "base/sequence.h"
#include "base/units.h"
#include "carrier/carrier.h"
#include "multipath/loss_detector.h"
#include "reliability/frame_body.h"
#include "reliability/sequence_set.h"
#include "wire/ack.h"
#include "wire/segment.h"

namespace cluster::reliability {

/// A long payload that leaves in frames of equal length with consecutive sequences. One description replaces
/// a body for each frame, and every transmission encodes the frame from it. A loss concerns one frame alone.
/// The payload stays in user memory until the peer has all of it.
struct FrameRun {
  Sequence first;
  wire::Segment segment;  ///< of the first frame; the segments of the other frames continue it
  ConstBytes payload;     ///< of all frames together
  std::size_t part = 0;   ///< bytes of the payload in each frame
  carrier::Token token = 0;
  bool ordered = false;
  std::size_t outstanding = 0;  ///< frames that the peer does not have; 0: the description is free

  std::size_t frames() const { return payload.size() / part; }
  Sequence end() const { return first + static_cast<std::uint32_t>(frames()); }
  /// Returns where the part of this frame begins.
  std::size_t offset_of(Sequence s) const { return static_cast<std::size_t>(s - first) * part; }
};

/// One frame of the window, sent or still queued (sent_packets in RFC 9002).
struct SentFrame {
  enum class State : std::uint8_t { queued, in_flight, lost, acknowledged };

  std::unique_ptr<FrameBody> body;  ///< null once acknowledged, and for a frame in a run
  Time sent_at{};                   ///< of the latest transmission
  TransmissionNumber transmission;  ///< of the latest transmission
  std::uint32_t sendings = 0;
  State state = State::queued;
  std::uint8_t path = 0;  ///< of the latest transmission
  std::uint16_t run = 0;  ///< index in SendWindow::runs_, counted from 1; 0: the frame is in no run
};

/// Consecutive frames of a run that were sent once, one after the other, on one path, and are acknowledged
/// together; or one frame.
struct AckedStretch {
  multipath::AckedFrame frames;
  std::uint8_t path = 0;
  bool ordered = false;
  Sequence run_end;          ///< one after the last frame of the run
  carrier::Token token = 0;  ///< the token of the run, if the peer now has all of it
};

class SendWindow {
 public:
  /// Holds at most `capacity` frames, numbered from `first` on. Takes memory as needed.
  SendWindow(std::size_t capacity, Sequence first);

  Sequence first() const { return first_; }
  Sequence end() const { return end_; }
  std::size_t span() const { return static_cast<std::size_t>(end_ - first_); }
  std::size_t free_frames() const { return capacity_ - static_cast<std::size_t>(end_ - first_); }
  bool has_space(std::size_t frames) const { return frames <= free_frames(); }
  SentFrame& at(Sequence s) { return frames_[s.value & mask_]; }
  const SentFrame& at(Sequence s) const { return frames_[s.value & mask_]; }

  /// Queues a frame behind all others; there must be space. Without memory for it the caller keeps the body.
  void push(std::unique_ptr<FrameBody>&& body);
  /// Memory for one more: the next push() does not throw.
  void reserve_frame() {
    if (static_cast<std::size_t>(end_ - first_) == frames_.size()) widen();
  }
  /// Queues the frames of a run that begins at end(). There must be space.
  void push_run(const FrameRun& run);
  /// Returns the run of the frame, or null if the frame has a body.
  const FrameRun* run_of(const SentFrame& frame) const {
    return frame.run == 0 ? nullptr : &runs_[frame.run - 1u];
  }
  bool has_token(const SentFrame& frame) const { return frame.run != 0 || !frame.body->tokens.empty(); }
  /// True if the application waits until the peer has this frame or has answered it.
  bool awaited(const SentFrame& frame) const { return has_token(frame) || frame.body->awaits_answer; }

  Sequence next() const { return next_; }
  std::size_t queued() const { return static_cast<std::size_t>(end() - next_); }
  /// Frames that were sent and are not acknowledged.
  std::size_t outstanding() const { return outstanding_count_; }
  /// The first outstanding frame, or next() if there is none. Ranges have acknowledged the frames from
  /// first() up to it.
  Sequence oldest() const { return outstanding_.next_member(first(), next_); }
  /// True if the peer has a frame beyond a missing one.
  bool has_gap() const { return outstanding_count_ < static_cast<std::size_t>(next_ - first()); }
  std::size_t footprint() const;
  bool has_lost() const { return !lost_.empty(); }
  /// True if frames with tokens are outstanding: their acknowledgement completes an operation.
  bool tokens_outstanding() const { return with_tokens_ != 0; }
  bool is_outstanding(Sequence s) const {
    return !s.before(first()) && s.before(next_) && outstanding_.contains(s);
  }

  void on_sent(Sequence s, TransmissionNumber transmission, Time now, std::uint8_t path = 0);
  /// The next `count` new frames have left, with transmission numbers from `transmission` on.
  void on_new_sent(std::size_t count, TransmissionNumber transmission, Time now, std::uint8_t path);
  void mark_lost(Sequence s);
  /// Takes the next frame to retransmit from the lost queue, which must not be empty.
  Sequence pop_lost();
  /// The link did not take the frame of pop_lost(). The frame is still lost.
  void requeue_lost(Sequence s) { lost_.push_back(s); }

  /// Returns false if no peer that keeps to the protocol can have sent this acknowledgement.
  bool valid_ack(Sequence ack, const wire::Ack* ranges) const;
  /// Calls on_acked(sequence, frame) for each newly acknowledged frame with a body, which the callback may
  /// take. Calls on_run_acked(stretch) for newly acknowledged frames of runs. Takes one step per range, body,
  /// stretch and 64 frames spanned.
  template <typename OnAcked, typename OnRunAcked>
  void acknowledge(Sequence ack, const wire::Ack* ranges, OnAcked&& on_acked, OnRunAcked&& on_run_acked) {
    if (ack.after(first())) {
      acknowledge_range(first(), ack, on_acked, on_run_acked);
      first_ = ack;
    }
    for (std::size_t i = 0; ranges != nullptr && i < ranges->count; ++i) {
      const Sequence from = ranges->ranges[i].first;
      acknowledge_range(from.before(first()) ? first() : from, ranges->ranges[i].end, on_acked, on_run_acked);
    }
    drop_outdated_losses();
  }

 private:
  void widen();
  std::uint16_t free_run();
  FrameRun& run_at(std::uint16_t number) { return runs_[number - 1u]; }
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

  static constexpr std::size_t kInitialFrames = 16;
  static constexpr std::int32_t kStaleAckMax = 65536;

  std::size_t capacity_;
  std::vector<SentFrame> frames_;
  std::uint32_t mask_;
  std::vector<FrameRun> runs_;
  Sequence first_;
  Sequence end_;
  SequenceSet outstanding_;
  RingQueue<Sequence> lost_;
  Sequence next_;
  std::size_t outstanding_count_ = 0;
  std::size_t with_tokens_ = 0;
};

}  // namespace cluster::reliability
