// What this side acknowledges, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/sequence.h"
#include "base/units.h"
#include "reliability/receive_window.h"
#include "wire/ack.h"
#include "wire/frame.h"

namespace cluster::reliability {

/// Decides when to acknowledge (docs/protocol.md 3.4). The acknowledgement leaves at once if the peer needs
/// it: after a gap, a closed gap, or a duplicate. Otherwise it leaves after a number of frames or the
/// configured delay, whichever comes first (RFC 9000 13.2).
///
/// If the peer waits for it, the acknowledgement may wait for kReplyWait as long as this side usually replies
/// that soon (TCP stacks call this "pingpong mode"). Otherwise it leaves at once: an application that
/// computes between receiving and replying would keep the peer waiting.
class AckScheduler {
 public:
  enum class Urgency : std::uint8_t { none, soon, now };
  explicit AckScheduler(Duration delay) : delay_(delay) {}

  /// This side has read `count` sequenced frames that came together, new or not. `at`: when they came to this
  /// node. `transmission`: the number of the last of them.
  void on_frame(Time now, Time at, TransmissionNumber transmission, Urgency urgency, std::size_t count = 1);
  bool any_frame() const { return any_frame_; }
  bool owed() const { return due_ != kNever; }
  /// When the last acknowledgement left. It covered every frame read by then.
  Time last_sent_at() const { return last_sent_at_; }
  bool due(Time now) const { return now >= due_; }
  Time deadline() const { return due_; }
  /// A frame that acknowledges everything has left. `bare`: without data.
  void on_ack_sent(Time now, bool bare);

  std::uint32_t spurious_reported() const { return spurious_reported_; }
  void set_spurious_reported(std::uint32_t count) { spurious_reported_ = count; }

  TransmissionNumber largest_received() const { return largest_received_; }
  Time largest_received_at() const { return largest_received_at_; }

 private:
  static constexpr Duration kReplyWait = 10us;
  /// Longer than kReplyWait, because the bare frame itself delays the answer.
  static constexpr Duration kReplyGrace = 25us;
  static constexpr unsigned kFramesMax = 66;  ///< in a stream of super-frames: every other one

  Duration delay_;
  bool any_frame_ = false;
  TransmissionNumber largest_received_;
  Time largest_received_at_{};
  Time due_ = kNever;
  Time last_sent_at_{};
  bool awaited_ = false;      ///< the peer waits for the owed acknowledgement
  bool replies_soon_ = true;  ///< the last awaited acknowledgement left with data, or could have
  Time reply_grace_until_{};  ///< data sent by then could have carried the last bare acknowledgement
  std::uint32_t spurious_reported_ = 0;
  unsigned frames_ = 0;  ///< frames since the last acknowledgement
};

/// Decides whether answers (`done`) wait so that they can travel with data of the application. If the
/// application computes after it has seen a write, waiting delays the answers. So answers wait only if data
/// followed them within kFollowsWithin at least kInTimeMin times in a row. Each useless wait raises that
/// count by kMissCost. The AckScheduler says when a waiting answer is due.
class AnswerDelay {
 public:
  /// Only answers are left to send. Returns true if they wait, which they do until the owed acknowledgement
  /// is due.
  bool wait() { return waiting_ = in_time_ >= kInTimeMin; }
  /// Answers have left without data.
  void on_answers_alone(Time now) {
    if (waiting_ || followed_by_ != kNever) in_time_ = -kMissCost;
    waiting_ = false;
    followed_by_ = now + kFollowsWithin;
  }
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
  /// Longer than a reply takes, because the lone frame delays the reply.
  static constexpr Duration kFollowsWithin = 25us;

  /// How often in a row data followed in time, at most kInTimeMin; below zero after a miss.
  int in_time_ = 0;
  bool waiting_ = false;       ///< answers are waiting
  Time followed_by_ = kNever;  ///< data sent by then could have carried the answers that left alone
};

/// How much of the acknowledgement a frame carries.
enum class AckIncluded : std::uint8_t { none, header, block };

/// An acknowledgement as a value, taken from the receive window and the scheduler. Every outgoing frame
/// carries as much of it as it has space for.
///
///   header   every frame before `ack` has arrived, the largest transmission, and its age
///   block    the ranges beyond a gap (SACK, RFC 2018), and how many duplicate frames arrived: the peer's
///            spurious retransmissions (D-SACK, RFC 2883)
///
/// Invariant: a frame without space for the ranges acknowledges nothing. `ack` and the largest transmission
/// alone would say that all frames between them are missing.
class OutgoingAck {
 public:
  OutgoingAck(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals);

  /// Sets the time at which the frames leave that carry this acknowledgement.
  void set_departure(Time now);

  struct Fit {
    AckIncluded included;
    std::size_t block_bytes;
  };
  /// Returns how much a frame with `free_bytes` left carries. `bare`: the frame has no segments.
  Fit fit(std::size_t free_bytes, bool bare) const;
  void write(wire::FrameHeader& header) const;
  /// Writes the block. Call it only if fit() says that the block is included.
  std::size_t write_block(std::byte* out) const { return wire::encode(*block_, out); }
  /// The number of duplicate frames that the block reports.
  std::uint32_t spurious() const { return block_ ? block_->spurious : 0; }

 private:
  bool any_;            ///< a frame has arrived that can be acknowledged
  bool gap_;            ///< the ranges must go with it
  bool spurious_news_;  ///< the peer does not know the number of spurious retransmissions yet
  Sequence ack_;
  TransmissionNumber largest_acked_;  ///< the largest transmission that has arrived...
  Time largest_acked_at_{};           ///< ...and when
  std::uint16_t delay_ = 0;
  std::optional<wire::Ack> block_;
};

}  // namespace cluster::reliability
