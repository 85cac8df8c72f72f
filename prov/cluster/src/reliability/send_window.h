// The send window holds every frame from the time it is queued until the peer has acknowledged it.
//
//      first                next               end
//   ----|--------------------|------------------|----
//       | in flight, lost    | queued: never    |
//       | or acknowledged    | sent yet         |
//
// `first` is the peer's cumulative acknowledgement. A frame keeps its sequence in all transmissions; each
// transmission has a number of its own. Lost frames wait in a queue for their retransmission, in the order in
// which they were declared lost. A frame in the queue may be acknowledged or retransmitted meanwhile. Such a
// frame leaves the queue when it reaches the front.
//
// Invariants: a frame either has a body or belongs to a run that describes it (FrameRun). A run is kept until
// all of its frames are acknowledged, so there are never more runs than frames. The front of the lost queue
// is always a frame that is still lost, so has_lost() need not search the queue.
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

/// Describes the frames of a long payload. They have equal lengths and consecutive sequences. The frames have
/// no bodies: each transmission encodes its frame from this description. If one frame is lost, only that
/// frame is retransmitted. The payload stays in user memory until the peer has acknowledged all of it.
struct FrameRun {
  Sequence first;
  wire::Segment segment;  ///< the segment of the first frame; the segments of the other frames continue it
  ConstBytes payload;     ///< the payload of all frames together
  std::size_t part = 0;   ///< bytes of the payload in each frame
  carrier::Token token = 0;
  bool ordered = false;
  std::size_t outstanding = 0;  ///< frames that are not acknowledged; if 0, the description is unused

  std::size_t frames() const { return payload.size() / part; }
  Sequence end() const { return first + static_cast<std::uint32_t>(frames()); }
  /// Returns at which offset of the payload the part of this frame begins.
  std::size_t offset_of(Sequence s) const { return static_cast<std::size_t>(s - first) * part; }
};

/// One frame of the window, sent or still queued (sent_packets in RFC 9002).
struct SentFrame {
  enum class State : std::uint8_t { queued, in_flight, lost, acknowledged };

  std::unique_ptr<FrameBody> body;  ///< null for a frame in a run, and once the frame is acknowledged
  Time sent_at{};                   ///< when the latest transmission left
  TransmissionNumber transmission;  ///< number of the latest transmission
  std::uint32_t sendings = 0;
  State state = State::queued;
  std::uint8_t path = 0;  ///< path of the latest transmission
  std::uint16_t run = 0;  ///< index in SendWindow::runs_, counted from 1, or 0 for a frame with a body
};

/// Consecutive frames of a run that one acknowledgement covers. All of them were sent only once, one after
/// the other, on the same path. A frame of a run that was sent in another way, for example twice, forms a
/// stretch alone.
struct AckedStretch {
  multipath::AckedFrame frames;
  std::uint8_t path = 0;
  bool ordered = false;
  std::size_t part = 0;      ///< FrameRun::part
  Sequence run_end{};        ///< the sequence after the last frame of the run
  carrier::Token token = 0;  ///< the token of the run if the whole run is now acknowledged, else 0
};

class SendWindow {
 public:
  /// The window holds at most `capacity` frames, rounded up to a power of two, with sequences from `first`
  /// on. Memory is allocated only when frames need it.
  SendWindow(std::size_t capacity, Sequence first);

  Sequence first() const { return first_; }
  Sequence end() const { return end_; }
  std::size_t span() const { return static_cast<std::size_t>(end_ - first_); }
  std::size_t free_frames() const { return capacity_ - static_cast<std::size_t>(end_ - first_); }
  bool has_space(std::size_t frames) const { return frames <= free_frames(); }
  SentFrame& at(Sequence s) { return frames_[s.value & mask_]; }
  const SentFrame& at(Sequence s) const { return frames_[s.value & mask_]; }

  /// Queues a frame after all others. The window must have space. If there is no memory, throws and leaves
  /// the body with the caller.
  void push(std::unique_ptr<FrameBody>&& body) {
    assert(has_space(1));
    reserve_frame();
    SentFrame& frame = at(end_);
    frame.body = std::move(body);
    frame.sendings = 0;
    frame.state = SentFrame::State::queued;
    frame.run = 0;
    ++end_;
  }
  /// Allocates memory for one more frame, so that the next push() does not throw.
  void reserve_frame() {
    if (static_cast<std::size_t>(end_ - first_) == frames_.size()) widen();
  }
  /// Queues the frames of a run that begins at end(). The window must have space.
  void push_run(const FrameRun& run);
  /// Returns the run of the frame, or null if the frame has a body.
  const FrameRun* run_of(const SentFrame& frame) const {
    return frame.run == 0 ? nullptr : &runs_[frame.run - 1u];
  }
  bool has_token(const SentFrame& frame) const { return frame.run != 0 || !frame.body->tokens.empty(); }
  /// Returns true if the application waits for an acknowledgement of this frame, or for the peer's answer to
  /// it.
  bool awaited(const SentFrame& frame) const { return has_token(frame) || frame.body->awaits_answer; }

  Sequence next() const { return next_; }
  std::size_t queued() const { return static_cast<std::size_t>(end() - next_); }
  /// Returns how many frames were sent and are not acknowledged.
  std::size_t outstanding() const { return outstanding_count_; }
  /// Returns the first outstanding frame, or next() if there is none.
  Sequence oldest() const { return outstanding_.next_member(first(), next_); }
  /// Returns true if the peer has acknowledged a frame but not all frames before it.
  bool has_gap() const { return outstanding_count_ < static_cast<std::size_t>(next_ - first()); }
  std::size_t footprint() const;
  bool has_lost() const { return !lost_.empty(); }
  /// Returns true if a frame with a token is outstanding, so that its acknowledgement may complete an
  /// operation.
  bool tokens_outstanding() const { return with_tokens_ != 0; }
  bool is_outstanding(Sequence s) const {
    return !s.before(first()) && s.before(next_) && outstanding_.contains(s);
  }

  /// Notes that the link has taken this frame, new or retransmitted.
  void on_sent(Sequence s, TransmissionNumber transmission, Time now, std::uint8_t path = 0);
  /// Notes that the link has taken the next `count` new frames, with transmission numbers from `transmission`
  /// on.
  void on_new_sent(std::size_t count, TransmissionNumber transmission, Time now, std::uint8_t path);
  /// Like on_new_sent(), for one frame that has a body.
  void on_lone_sent(TransmissionNumber transmission, Time now, std::uint8_t path) {
    SentFrame& frame = at(next_);
    frame.sent_at = now;
    frame.transmission = transmission;
    frame.sendings = 1;
    frame.state = SentFrame::State::in_flight;
    frame.path = path;
    if (!frame.body->tokens.empty()) ++with_tokens_;
    outstanding_.insert(next_);
    ++outstanding_count_;
    ++next_;
  }
  void mark_lost(Sequence s);
  /// Removes and returns the front of the lost queue, which must not be empty.
  Sequence pop_lost();
  /// Called if the link did not take the frame that pop_lost() returned. The frame is still lost.
  void requeue_lost(Sequence s) { lost_.push_back(s); }

  /// Returns false if a peer that follows the protocol cannot have sent this acknowledgement.
  bool valid_ack(Sequence ack, const wire::Ack* ranges) const;
  /// If `ack` newly acknowledges only the oldest frame, and this frame has a body, marks the frame as
  /// acknowledged and returns it. Otherwise does nothing and returns null. If frames leave one by one, nearly
  /// every acknowledgement acknowledges only the oldest frame.
  SentFrame* acknowledge_oldest(Sequence ack) {
    if (ack != first_ + 1 || !outstanding_.contains(first_) || at(first_).run != 0) return nullptr;
    SentFrame& frame = at(first_);
    remove(first_, frame);
    first_ = ack;
    drop_outdated_losses();
    return &frame;
  }
  /// Marks frames as acknowledged. For each newly acknowledged frame with a body, calls on_acked(sequence,
  /// frame), which may move the body away. For newly acknowledged frames of runs, calls
  /// on_run_acked(stretch). The cost is one step for each range, each frame with a body, each stretch, and
  /// each 64 frames of a range.
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
  void remove(Sequence s, SentFrame& frame) {
    outstanding_.erase(s);
    --outstanding_count_;
    if (!frame.body->tokens.empty()) --with_tokens_;
    frame.state = SentFrame::State::acknowledged;
  }
  AckedStretch remove_stretch(Sequence s, Sequence end);
  void drop_outdated_losses() {
    if (!lost_.empty()) [[unlikely]]
      find_lost();
  }
  void find_lost();

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
