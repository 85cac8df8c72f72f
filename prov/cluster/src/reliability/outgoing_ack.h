// Decides what this side acknowledges, and when the acknowledgements leave.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/sequence.h"
#include "base/units.h"
#include "reliability/receive_window.h"
#include "wire/ack.h"
#include "wire/frame.h"

namespace cluster::reliability {

/// Decides when to acknowledge (docs/protocol.md 3.4). The acknowledgement leaves at once if the peer needs
/// it: while there is a gap, when a gap is closed, and when a duplicate arrives. (Gaps do not count while
/// frames arrive on several paths.) Otherwise it leaves after kFramesMax frames or after the configured
/// delay, whichever is earlier (RFC 9000 13.2).
///
/// A frame with the flag kAckNow says that the peer waits for the acknowledgement of this frame. This side
/// holds such an awaited acknowledgement back for at most kReplyWait, so that it can leave with a reply of
/// the application. An acknowledgement is held back only if the previous awaited one left with a reply, or
/// could have left with one. (TCP stacks call this "pingpong mode".) Otherwise the acknowledgement leaves at
/// once, because the application may compute for a long time before it replies.
class AckScheduler {
 public:
  enum class Urgency : std::uint8_t { none, soon, now };
  explicit AckScheduler(Duration delay) : delay_(delay) {}

  /// Called when this side has read `count` sequenced frames that arrived together, new ones or duplicates.
  /// `at`: when this node received them. `transmission`: the transmission number of the last one.
  void on_frame(Time now, Time at, TransmissionNumber transmission, Urgency urgency, std::size_t count = 1) {
    if (!any_frame_ || transmission.after(largest_received_)) {
      largest_received_ = transmission;
      largest_received_at_ = at;
    }
    any_frame_ = true;
    frames_ += static_cast<unsigned>(count);
    awaited_ |= urgency == Urgency::soon;
    if (urgency == Urgency::soon && !replies_soon_) urgency = Urgency::now;
    Duration wait = urgency == Urgency::soon ? std::min(kReplyWait, delay_) : delay_;
    if (urgency == Urgency::now || frames_ >= kFramesMax) wait = Duration::zero();
    due_ = std::min(due_, now + wait);
  }
  bool any_frame() const { return any_frame_; }
  bool owed() const { return due_ != kNever; }
  /// Returns when the last acknowledgement left. It covered every frame that this side had read by then.
  Time last_sent_at() const { return last_sent_at_; }
  bool due(Time now) const { return now >= due_; }
  Time deadline() const { return due_; }
  /// Called when a frame with a full acknowledgement has left. `bare`: the frame contained no data of the
  /// application.
  void on_ack_sent(Time now, bool bare) {
    if (awaited_) {
      replies_soon_ = !bare && now <= due_;
      if (bare) reply_grace_until_ = now + kReplyGrace;
    } else if (!bare && now <= reply_grace_until_) {
      replies_soon_ = true;
    }
    awaited_ = false;
    due_ = kNever;
    last_sent_at_ = now;
    frames_ = 0;
  }

  std::uint32_t spurious_reported() const { return spurious_reported_; }
  void set_spurious_reported(std::uint32_t count) { spurious_reported_ = count; }

  TransmissionNumber largest_received() const { return largest_received_; }
  Time largest_received_at() const { return largest_received_at_; }

 private:
  static constexpr Duration kReplyWait = 10us;
  /// If a reply follows a bare acknowledgement within this time, the reply could have carried the
  /// acknowledgement. This time is longer than kReplyWait, because the transmission of the bare frame delays
  /// the reply.
  static constexpr Duration kReplyGrace = 25us;
  /// After this many frames the acknowledgement leaves at once. In a stream of super-frames, it leaves after
  /// every second super-frame.
  static constexpr unsigned kFramesMax = 66;

  Duration delay_;
  bool any_frame_ = false;
  TransmissionNumber largest_received_;
  Time largest_received_at_{};
  Time due_ = kNever;
  Time last_sent_at_{};
  bool awaited_ = false;  ///< true if the peer waits for the owed acknowledgement
  /// True if the last acknowledgement for which the peer waited left with data, or could have left with data.
  bool replies_soon_ = true;
  /// If data leaves before this time, the data could have carried the last bare acknowledgement.
  Time reply_grace_until_{};
  std::uint32_t spurious_reported_ = 0;
  unsigned frames_ = 0;  ///< frames since the last acknowledgement
};

/// Decides whether answers (`done`) wait, so that they can leave in one frame with data of the application.
/// If the application computes after it has seen a write, the wait only delays the answers. So answers wait
/// only if data has followed each of the last kInTimeMin answers within kFollowsWithin. Once data fails to
/// follow in time, kMissCost + kInTimeMin answers must be followed in time before answers wait again. The
/// AckScheduler says when a waiting answer is due.
class AnswerDelay {
 public:
  /// Called if only answers are left to send. Returns true if they should wait until the owed acknowledgement
  /// is due.
  bool wait() { return waiting_ = in_time_ >= kInTimeMin; }
  /// Called when answers have left without data.
  void on_answers_alone(Time now) {
    if (waiting_ || followed_by_ != kNever) in_time_ = -kMissCost;
    waiting_ = false;
    followed_by_ = now + kFollowsWithin;
  }
  /// Called when a frame with data has left.
  void on_data(Time now) {
    waiting_ = false;
    if (followed_by_ == kNever) return;
    if (now > followed_by_) {
      in_time_ = -kMissCost;
    } else if (in_time_ < kInTimeMin) {
      ++in_time_;
    }
    followed_by_ = kNever;
  }

 private:
  static constexpr int kInTimeMin = 4;
  static constexpr int kMissCost = 16;
  /// If data follows answers that left alone within this time, the data could have carried the answers. This
  /// time is longer than a reply takes, because the transmission of the answers delays the reply.
  static constexpr Duration kFollowsWithin = 25us;

  /// Counts how many times in a row data has followed in time, up to kInTimeMin. Negative after data has
  /// failed to follow in time.
  int in_time_ = 0;
  bool waiting_ = false;  ///< true if answers are waiting now
  /// If data leaves before this time, the data could have carried the answers that left alone.
  Time followed_by_ = kNever;
};

/// Returns the field `ack_delay` of a frame that leaves at `now` and acknowledges a frame that arrived at
/// `arrived`.
inline std::uint16_t ack_delay_field(Time now, Time arrived) {
  const auto age = static_cast<std::uint64_t>(std::max(now - arrived, Duration::zero()).count());
  constexpr std::uint64_t limit = std::numeric_limits<std::uint16_t>::max();
  return static_cast<std::uint16_t>(std::min(age / wire::kAckDelayUnit, limit));
}

/// How much of the acknowledgement a frame carries.
enum class AckIncluded : std::uint8_t { none, header, block };

/// An acknowledgement as a value: a copy of the state of the receive window and the scheduler. Every outgoing
/// frame of the flow carries as much of the acknowledgement as fits into the frame.
///
///   header   `ack` (every frame before this sequence has arrived), the largest transmission number, and how
///            long ago this transmission arrived
///   block    the ranges after the first gap (SACK, RFC 2018), and the number of the peer's spurious
///            retransmissions (D-SACK, RFC 2883)
///
/// Invariant: if there are ranges, a frame without space for them acknowledges nothing. With only `ack` and
/// the largest transmission number, the peer would conclude that all frames between the two are missing.
class OutgoingAck {
 public:
  OutgoingAck(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals);

  /// Sets the time at which the frames with this acknowledgement leave.
  void set_departure(Time now);

  struct Fit {
    AckIncluded included;
    std::size_t block_bytes;
  };
  /// Returns how much of the acknowledgement a frame with `free_bytes` of free space carries. `bare`: the
  /// frame has no segments.
  Fit fit(std::size_t free_bytes, bool bare) const;
  /// Writes the part of the acknowledgement that is in the header.
  void write(wire::FrameHeader& header) const;
  /// Writes the block and returns its size. Called only if fit() says that the frame carries the block.
  std::size_t write_block(std::byte* out) const { return wire::encode(*block_, out); }
  /// Returns the number of spurious retransmissions that the block reports.
  std::uint32_t spurious() const { return block_ ? block_->spurious : 0; }

 private:
  bool any_;            ///< true if any frame has arrived
  bool gap_;            ///< true if there are ranges; a frame without them acknowledges nothing
  bool spurious_news_;  ///< true if the peer does not know the current number of spurious retransmissions
  Sequence ack_;
  TransmissionNumber largest_acked_;  ///< the largest transmission number that has arrived
  Time largest_acked_at_{};           ///< when the largest transmission number arrived
  std::uint16_t delay_ = 0;
  std::optional<wire::Ack> block_;
};

}  // namespace cluster::reliability
