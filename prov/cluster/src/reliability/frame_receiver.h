// Receives the frames of the peer: puts them in order (ReceiveWindow), decides when to acknowledge them
// (AckScheduler), and delivers their segments. Once the peer has sent a fin and all frames before it are
// delivered, the receiver ends the flow.
//
// There are two timers. One sends a delayed acknowledgement. The other starts when a fin arrives. If frames
// are still missing when kFinTimeout has passed, this timer ends the flow, because a peer that has sent a fin
// retransmits nothing.
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

/// Reassembles frames that arrive in parts because they are too long for the path (frame_size.h).
/// Acknowledgements and losses concern whole frames only. If the sender cuts a frame in a new way, the
/// assembly drops the parts that were cut in the old way. If more than kFramesMax frames would be incomplete,
/// the assembly drops the oldest, which the peer must then retransmit.
class PartAssembly {
 public:
  /// Adds the part `view`. Returns true if the frame is now complete. If so, `view` becomes the whole frame,
  /// valid until the next call.
  bool complete(wire::FrameView& view);

  std::size_t footprint() const;

 private:
  struct Frame {
    Sequence sequence;
    std::uint8_t count = 0;
    std::uint64_t here = 0;  ///< one bit for each part that has arrived
    std::vector<std::byte> segments;

    bool whole() const { return here == ~std::uint64_t{0} >> (wire::kPartsMax - count); }
  };

  Frame& frame_of(const wire::FrameView& view);

  static constexpr std::size_t kFramesMax = 16;

  std::vector<Frame> frames_;        ///< oldest first
  std::vector<std::byte> complete_;  ///< the segments of the last whole frame, which the caller reads
};

enum class ReceiveResult : std::uint8_t {
  accepted,     ///< new data: call next()
  nothing_new,  ///< a duplicate, or a frame of this session that carries no data
  late,         ///< older than all frames that the peer may still retransmit
  incomplete,   ///< a part of a frame whose other parts have not all arrived
  /// Dropped and counted: a frame of another session, from a foreign address, outside the window, or with an
  /// impossible acknowledgement or fin; any frame once the flow has ended.
  refused,
};

class FrameReceiver {
 public:
  /// The receiver ends the flow through `status` (with the cause `reset`) once the peer has closed the flow
  /// and all frames are delivered.
  FrameReceiver(std::size_t window, Duration ack_delay, multipath::PathManager& paths, Counters& counters,
                FlowStatus& status);

  /// Handles a frame with segments, or a part of such a frame. `arrived`: when this node received `view`. If
  /// `count` > 1, `view` is the first of `count` consecutive frames (wire/admit.h). The caller delivers these
  /// frames itself, before it calls next().
  ReceiveResult receive(Time now, const wire::FrameView& view, Time arrived, std::size_t count);
  /// Returns true if receive() accepts these `count` frames in one call (ReceiveWindow::takes_run).
  bool takes_run(const wire::FrameView& first, std::size_t count) const {
    return window_.takes_run(first.sequence, count, first.in_order());
  }
  /// Returns true if frames but no fin have arrived, no frame is missing or held, and a frame header can
  /// carry the whole acknowledgement.
  bool ordinary() const {
    return window_.complete() && !fin_ && acks_.any_frame() &&
           window_.spurious() == acks_.spurious_reported();
  }
  /// Returns true if the frame is the next one in order, and its transmission is newer than all others.
  /// ordinary() must be true.
  bool expects(Sequence s, TransmissionNumber transmission) const {
    return s == window_.expected() && transmission.after(acks_.largest_received()) && window_.complete();
  }
  /// Records the arrival of a frame that expects() has accepted. The caller delivers the frame. Returns true
  /// if the frame must be acknowledged at once.
  bool take_expected(Time now, Time arrived, TransmissionNumber transmission, bool ack_now) {
    using Urgency = AckScheduler::Urgency;
    window_.take_expected(transmission);
    acks_.on_frame(now, arrived, transmission, ack_now ? Urgency::soon : Urgency::none);
    return acks_.due(now);
  }
  /// Returns true if a fin may claim that the peer's last frame is the one before `end`.
  bool may_end_at(Sequence end) const;
  /// Notes that the peer has closed the flow, and that its last frame is the one before `end`.
  void on_fin(Time now, Sequence end);

  /// Sets `segments` to the next segments to deliver. Returns false if there are none. `segments` stays valid
  /// until the next call of next() or Flow::receive().
  bool next(ConstBytes& segments);
  /// The caller uses the window to hold segments for which there is no space (ReceiveWindow::hold).
  ReceiveWindow& window() { return window_; }
  const ReceiveWindow& window() const { return window_; }
  /// Called when there is space for the first of the held segments.
  void resume(Time now);
  std::size_t footprint() const { return window_.footprint() + parts_.footprint(); }

  OutgoingAck acknowledgement(Time now) const { return {now, acks_, window_}; }
  /// Fills in the acknowledgement of a lone frame that leaves at `now`. ordinary() must be true.
  void acknowledge(Time now, wire::LoneNumbers& numbers) const {
    numbers.ack = window_.expected();
    numbers.largest_acked = acks_.largest_received();
    numbers.ack_delay = ack_delay_field(now, acks_.largest_received_at());
  }
  /// Called when the lone frame has left. `bare`: the frame carried no data of the application.
  void on_acknowledged(Time now, bool bare) { acks_.on_ack_sent(now, bare); }
  bool owes_ack() const { return acks_.owed(); }
  bool ack_due(Time now) const { return acks_.due(now); }
  /// Called when frames have left. `included` says how much of `ack` they carry. `bare`: the frames carried
  /// no data of the application.
  void on_ack_sent(Time now, const OutgoingAck& ack, AckIncluded included, bool bare);

  /// Returns true if neither a numbered frame nor a fin has arrived from the peer.
  bool untouched() const { return !acks_.any_frame() && !fin_; }
  bool fin_timed_out(Time now) const { return now >= fin_deadline(); }
  Time deadline() const { return std::min(acks_.deadline(), fin_deadline()); }

 private:
  static constexpr Duration kFinTimeout = 200ms;

  ReceiveResult take(Time now, const wire::FrameView& view, Time arrived, std::size_t count);
  bool ack_was_lost(Time arrived) const;
  void end_if_complete();
  /// Returns when the flow ends although frames are missing. Returns kNever while this side holds segments
  /// back. In this case, frames that seem to be missing have perhaps arrived, and wait behind these segments.
  Time fin_deadline() const { return window_.holding() ? kNever : fin_timeout_at_; }

  multipath::PathManager& paths_;
  Counters& counters_;
  FlowStatus& status_;
  ReceiveWindow window_;
  PartAssembly parts_;
  AckScheduler acks_;
  /// Set once the peer has closed the flow: the peer's last frame is the one before this sequence.
  std::optional<Sequence> fin_;
  Time fin_timeout_at_ = kNever;  ///< frames that are still missing at this time will never arrive
};

}  // namespace cluster::reliability
