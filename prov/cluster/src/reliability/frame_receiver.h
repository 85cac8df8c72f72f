// Takes in the frames of the peer: keeps them in order (ReceiveWindow), decides when they are acknowledged
// (AckScheduler), hands their segments on, and ends the session when the peer has said fin and everything
// before it has been handed on.
//
// Timers: the delayed acknowledgement; after a fin, kFinTimeout for what is still missing (the peer does not
// retransmit any more).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/sequence.h"
#include "base/units.h"
#include "multipath/path_manager.h"
#include "reliability/flow_status.h"
#include "reliability/outgoing_ack.h"
#include "reliability/receive_window.h"
#include "wire/admit.h"

namespace cluster::reliability {

/// Frames that come in parts, because the path has ceased to carry frames as long as they are (frame_size.h): keeps the pieces until a frame
/// is whole. Loss and acknowledgement know whole frames only. If the sender cuts a frame otherwise than before, or more than kFramesMax are
/// incomplete, the older pieces are forgotten, which costs a retransmission.
class PartAssembly {
 public:
  /// True if `view`, a part, makes its frame whole: then it is the whole, valid until the next call.
  bool complete(wire::FrameView& view);

  std::size_t footprint() const;

 private:
  struct Frame {
    Sequence sequence;
    std::uint8_t count = 0;
    std::uint64_t here = 0;  ///< a bit for each piece
    std::vector<std::byte> segments;

    bool whole() const { return here == ~std::uint64_t{0} >> (wire::kPartsMax - count); }
  };

  Frame& frame_of(const wire::FrameView& view);

  static constexpr std::size_t kFramesMax = 16;

  std::vector<Frame> frames_;        ///< oldest first
  std::vector<std::byte> complete_;  ///< what the caller is looking at
};

enum class ReceiveResult : std::uint8_t {
  accepted,     ///< something new: call next(); the sender's address is validated
  nothing_new,  ///< a duplicate or a bare acknowledgement of this session
  late,         ///< further back than anything that the peer may still repeat
  incomplete,   ///< one part of a frame: others are missing
  refused,      ///< not of this session or outside the window: dropped and counted
};

class FrameReceiver {
 public:
  /// Ends the flow (`reset`) once the peer has closed and everything that it sent has been handed on.
  FrameReceiver(std::size_t window, Duration ack_delay, multipath::PathManager& paths, Counters& counters,
                FlowStatus& status);

  /// A frame with segments, or a part of one; `arrived`: when it came to this node. With `count` > 1: the first of so many that
  /// continue each other (wire/admit.h), which the caller hands on before it asks for next().
  ReceiveResult receive(Time now, const wire::FrameView& view, Time arrived, std::size_t count);
  /// True if receive() takes so many frames at once: all of them are new.
  bool takes_run(const wire::FrameView& first, std::size_t count) const {
    return window_.takes_run(first.sequence, count, first.in_order());
  }
  /// True if the peer's frames may end before `end`, as far as is known.
  bool may_end_at(Sequence end) const;
  void on_fin(Time now, Sequence end);

  /// The next run of segments in the promised order, valid until the next call of next() or Flow::receive().
  bool next(ConstBytes& segments);
  /// To hold what there is no space for; resume() is for when there is space for the first held segment.
  ReceiveWindow& window() { return window_; }
  const ReceiveWindow& window() const { return window_; }
  void resume(Time now);
  std::size_t footprint() const { return window_.footprint() + parts_.footprint(); }

  OutgoingAck acknowledgement(Time now) const { return {now, acks_, window_}; }
  bool owes_ack() const { return acks_.owed(); }
  bool ack_due(Time now) const { return acks_.due(now); }
  /// Frames have left that carry `ack` as far as `included` says; `bare`: in a frame of its own.
  void on_ack_sent(Time now, const OutgoingAck& ack, AckIncluded included, bool bare);

  /// True if the peer has sent nothing yet that has a number, and not closed.
  bool untouched() const { return !acks_.any_frame() && !fin_; }
  bool fin_timed_out(Time now) const { return now >= fin_deadline(); }
  Time deadline() const { return std::min(acks_.deadline(), fin_deadline()); }

 private:
  static constexpr Duration kFinTimeout = 200ms;

  ReceiveResult take(Time now, const wire::FrameView& view, Time arrived, std::size_t count);
  bool ack_was_lost(Time arrived) const;
  void end_if_complete();
  /// What this side holds back is not missing.
  Time fin_deadline() const { return window_.holding() ? kNever : fin_timeout_at_; }

  multipath::PathManager& paths_;
  Counters& counters_;
  FlowStatus& status_;
  ReceiveWindow window_;
  PartAssembly parts_;
  AckScheduler acks_;
  std::optional<Sequence> fin_;   ///< the peer has closed; its frames end before this one
  Time fin_timeout_at_ = kNever;  ///< what is missing by then is missing for good
};

}  // namespace cluster::reliability
