// When to acknowledge. At once when the peer needs to know (a gap, a gap that closed, a duplicate), otherwise
// after a number of frames or the configured delay, whichever comes first (RFC 9000 13.2). Any data frame to
// the peer carries the acknowledgement for nothing.
//
// If the peer waits for it, it leaves within kReplyWait when this side's replies usually come that soon:
// request and response then need no frames of acknowledgement. An application that computes between receiving
// and replying comes back late, and the peer would stand still meanwhile: so after a late reply, or none, the
// next requests are acknowledged at once, until data follows one within kReplyGrace. (The idea is that of the
// "pingpong mode" of TCP stacks.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/sequence.h"
#include "base/units.h"

namespace cluster::reliability {

class AckScheduler {
 public:
  enum class Urgency : std::uint8_t { none, soon, now };
  explicit AckScheduler(Duration delay) : delay_(delay) {}

  /// A sequenced frame, new or not, was read; `at`: when it had come to this node.
  /// Of `count` such frames that came together, `transmission` is that of the last.
  void on_frame(Time now, Time at, TransmissionNumber transmission, Urgency urgency, std::size_t count = 1);
  /// True once a frame of the peer has arrived: there is something to acknowledge.
  bool any_frame() const { return any_frame_; }
  bool owed() const { return due_ != kNever; }
  /// When the last acknowledgement left; it covered every frame that was read by then.
  Time last_sent_at() const { return last_sent_at_; }
  bool due(Time now) const { return now >= due_; }
  Time deadline() const { return due_; }
  /// An acknowledgement of everything has left, with data or `bare`.
  void on_ack_sent(Time now, bool bare);

  /// The number of spurious retransmissions that the peer was last sent.
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

}  // namespace cluster::reliability
