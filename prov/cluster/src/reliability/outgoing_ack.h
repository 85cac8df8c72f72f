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

/// When to acknowledge (docs/protocol.md 3.4). At once when the peer needs to know (a gap, a gap that closed, a duplicate), otherwise
/// after a number of frames or the configured delay, whichever comes first (RFC 9000 13.2). If the peer waits for the acknowledgement, it
/// leaves within kReplyWait as long as this side's replies usually come that soon (TCP stacks call this "pingpong mode"): an application
/// that computes between receiving and replying would let the peer stand still meanwhile.
class AckScheduler {
 public:
  enum class Urgency : std::uint8_t { none, soon, now };
  explicit AckScheduler(Duration delay) : delay_(delay) {}

  /// A sequenced frame, new or not, was read; `at`: when it had come to this node.
  /// Of `count` such frames that came together, `transmission` is that of the last.
  void on_frame(Time now, Time at, TransmissionNumber transmission, Urgency urgency, std::size_t count = 1);
  bool any_frame() const { return any_frame_; }
  bool owed() const { return due_ != kNever; }
  /// When the last acknowledgement left; it covered every frame that was read by then.
  Time last_sent_at() const { return last_sent_at_; }
  bool due(Time now) const { return now >= due_; }
  Time deadline() const { return due_; }
  /// An acknowledgement of everything has left, with data or `bare`.
  void on_ack_sent(Time now, bool bare);

  std::uint32_t spurious_reported() const { return spurious_reported_; }
  void set_spurious_reported(std::uint32_t count) { spurious_reported_ = count; }

  TransmissionNumber largest_received() const { return largest_received_; }
  Time largest_received_at() const { return largest_received_at_; }

 private:
  static constexpr Duration kReplyWait = 10us;
  static constexpr Duration kReplyGrace = 25us;  ///< more: the bare frame itself has delayed the answer
  static constexpr unsigned kFramesMax = 66;     ///< of a stream of super-frames, every other one

  Duration delay_;
  bool any_frame_ = false;
  TransmissionNumber largest_received_;
  Time largest_received_at_{};
  Time due_ = kNever;
  Time last_sent_at_{};
  bool awaited_ = false;      ///< the peer waits for the acknowledgement that is owed
  bool replies_soon_ = true;  ///< the last awaited one left with data, or could have
  Time reply_grace_until_{};  ///< data sent by then could have carried the last bare one
  std::uint32_t spurious_reported_ = 0;
  unsigned frames_ = 0;  ///< arrived since the last acknowledgement
};

/// Whether answers (`done`) wait so that they can travel with data of the application. An application that computes after it has seen a
/// write would make them late by that. So answers wait only after data followed them within kFollowsWithin kInTimeMin times in a row; each
/// wait without effect costs kMissCost more. The AckScheduler says when an answer that waits is due.
class AnswerDelay {
 public:
  /// Nothing is to be sent but answers. True if they wait; until when, the owed acknowledgement says.
  bool wait() { return waiting_ = in_time_ >= kInTimeMin; }
  /// Answers have left, and nothing else with them.
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
  static constexpr Duration kFollowsWithin = 25us;  ///< more than a reply takes: the lone frame delays it

  int in_time_ = 0;            ///< how often in a row, at most kInTimeMin; below zero after a miss
  bool waiting_ = false;       ///< answers wait now
  Time followed_by_ = kNever;  ///< data sent by then could have taken along the answers that left alone
};

/// How much of the acknowledgement a frame carries.
enum class AckIncluded : std::uint8_t { none, header, block };

/// A value, taken from the receive window and the acknowledgement scheduler, that every outgoing frame carries as far as it has space.
///
///   header   every frame before `ack` has arrived, the largest transmission that has, and how long ago
///   block    the ranges beyond a gap (SACK, RFC 2018), and how many frames came although they were here: the
///            peer's spurious retransmissions (D-SACK, RFC 2883)
///
/// Invariant: a frame without space for the ranges acknowledges nothing, since `ack` and the largest
/// transmission alone would say that everything between them is missing.
class OutgoingAck {
 public:
  OutgoingAck(Time now, const AckScheduler& acks, const ReceiveWindow& arrivals);

  /// The frames that carry it leave at `now`, not when it was made.
  void set_departure(Time now);

  struct Fit {
    AckIncluded included;
    std::size_t block_bytes;
  };
  /// What a frame with so many bytes left carries; `bare`: it has no segments.
  Fit fit(std::size_t free_bytes, bool bare) const;
  void write(wire::FrameHeader& header) const;
  /// Only if fit() says that the block is included.
  std::size_t write_block(std::byte* out) const { return wire::encode(*block_, out); }
  /// Frames of the peer that arrived although they were here, in the block.
  std::uint32_t spurious() const { return block_ ? block_->spurious : 0; }

 private:
  bool any_;            ///< a frame has arrived that can be acknowledged
  bool gap_;            ///< ranges must go with it
  bool spurious_news_;  ///< the peer does not know the number of spurious retransmissions yet
  Sequence ack_;
  TransmissionNumber largest_acked_;  ///< largest transmission that has arrived...
  Time largest_acked_at_{};           ///< ...and when
  std::uint16_t delay_ = 0;
  std::optional<wire::Ack> block_;
};

}  // namespace cluster::reliability
