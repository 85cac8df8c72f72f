// Takes in the frames of the peer. It puts them in order (ReceiveWindow), decides when to acknowledge them
// (AckScheduler), and delivers their segments. It ends the session when the peer has sent a fin and all
// frames before the fin are delivered.
//
// Timers: the delayed acknowledgement, and after a fin kFinTimeout for missing frames, which the peer no
// longer retransmits.
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

/// Reassembles frames that come in parts, because the path no longer carries frames of their length
/// (frame_size.h). Loss and acknowledgement know whole frames only. If the sender cuts a frame in a new way,
/// the assembly drops the older pieces. If more than kFramesMax are incomplete, it drops the oldest frame.
/// Each drop costs a retransmission.
class PartAssembly {
 public:
  /// Adds the part `view`. Returns true if the frame is complete; `view` is then the whole frame, valid until
  /// the next call.
  bool complete(wire::FrameView& view);

  std::size_t footprint() const;

 private:
  struct Frame {
    Sequence sequence;
    std::uint8_t count = 0;
    std::uint64_t here = 0;  ///< one bit for each piece that has arrived
    std::vector<std::byte> segments;

    bool whole() const { return here == ~std::uint64_t{0} >> (wire::kPartsMax - count); }
  };

  Frame& frame_of(const wire::FrameView& view);

  static constexpr std::size_t kFramesMax = 16;

  std::vector<Frame> frames_;        ///< oldest first
  std::vector<std::byte> complete_;  ///< the frame that the caller reads
};

enum class ReceiveResult : std::uint8_t {
  accepted,     ///< new data: call next(); the sender's address is validated
  nothing_new,  ///< a duplicate or a bare acknowledgement of this session
  late,         ///< older than any frame that the peer may still retransmit
  incomplete,   ///< a part of a frame that lacks other parts
  refused,      ///< of another session or outside the window: dropped and counted
};

class FrameReceiver {
 public:
  /// Ends the flow (`reset`) once the peer has closed and all its frames are delivered.
  FrameReceiver(std::size_t window, Duration ack_delay, multipath::PathManager& paths, Counters& counters,
                FlowStatus& status);

  /// Takes in a frame with segments, or a part of one. `arrived`: when it came to this node. With `count` >
  /// 1, `view` is the first of `count` consecutive frames (wire/admit.h), which the caller delivers before it
  /// calls next().
  ReceiveResult receive(Time now, const wire::FrameView& view, Time arrived, std::size_t count);
  /// True if receive() takes these `count` frames at once: all of them are new.
  bool takes_run(const wire::FrameView& first, std::size_t count) const {
    return window_.takes_run(first.sequence, count, first.in_order());
  }
  /// True if the peer's frames may end before `end`, as far as this side knows.
  bool may_end_at(Sequence end) const;
  void on_fin(Time now, Sequence end);

  /// Gives the next run of segments in the promised order. It is valid until the next call of next() or
  /// Flow::receive().
  bool next(ConstBytes& segments);
  /// To hold what there is no space for; resume() is for when there is space for the first held segment.
  ReceiveWindow& window() { return window_; }
  const ReceiveWindow& window() const { return window_; }
  void resume(Time now);
  std::size_t footprint() const { return window_.footprint() + parts_.footprint(); }

  OutgoingAck acknowledgement(Time now) const { return {now, acks_, window_}; }
  bool owes_ack() const { return acks_.owed(); }
  bool ack_due(Time now) const { return acks_.due(now); }
  /// Frames that carry `ack`, as far as `included` says, have left. `bare`: in a frame of its own.
  void on_ack_sent(Time now, const OutgoingAck& ack, AckIncluded included, bool bare);

  /// True if the peer has sent no numbered frame yet, and no fin.
  bool untouched() const { return !acks_.any_frame() && !fin_; }
  bool fin_timed_out(Time now) const { return now >= fin_deadline(); }
  Time deadline() const { return std::min(acks_.deadline(), fin_deadline()); }

 private:
  static constexpr Duration kFinTimeout = 200ms;

  ReceiveResult take(Time now, const wire::FrameView& view, Time arrived, std::size_t count);
  bool ack_was_lost(Time arrived) const;
  void end_if_complete();
  /// A frame that this side holds back does not count as missing.
  Time fin_deadline() const { return window_.holding() ? kNever : fin_timeout_at_; }

  multipath::PathManager& paths_;
  Counters& counters_;
  FlowStatus& status_;
  ReceiveWindow window_;
  PartAssembly parts_;
  AckScheduler acks_;
  std::optional<Sequence> fin_;   ///< the peer has closed, and its last frame is the one before
  Time fin_timeout_at_ = kNever;  ///< frames that are missing by then will not come
};

}  // namespace cluster::reliability
