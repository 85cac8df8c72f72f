// The frame lane carries short messages and short remote writes between nodes, each in a frame of its own.
// Most conditions for its use are checked in advance, once for several frames. All other operations and
// frames take the general path (Flow::transmit, Flow::receive), which does not depend on the lane.
//
// review() opens the lane at the end of each Flow::transmit() if all these conditions hold:
//   - both sides have each other's opening, and the flow is alive;
//   - there is one IP path, over which the peer was heard, and the path MTU is known;
//   - no frame is lost, queued, held, missing or due for retransmission, and no fin has arrived;
//   - few frames are in flight;
//   - a frame header can carry the whole acknowledgement of each side;
//   - frames have checksums and no seals.
// Code that gives the flow work for a turn calls TxScheduler::mark(), which closes the lane until the flow
// has done that work. So what review() has found stays true as long as the lane is open. Meanwhile only the
// lane itself uses the flow. accepts() and predicts() check again what an earlier use of the lane can have
// changed.
//
// Down. send() writes a header before the message and calls the link once. The frame is in the send window
// like any other: if it is lost, the general path retransmits it. The answer to the peer's write leaves in
// the next frame if data usually follows soon (AnswerDelay). Otherwise it leaves at once, in a frame of its
// own.
//
// Up. predicts() compares an arriving frame with the only frame that is expected now (Van Jacobson's header
// prediction): the next sequence, a newer transmission, an acknowledgement that is not older than the last,
// and the known address of the peer. take() records the arrival. The caller delivers the message, or executes
// the write and calls answer().
//
// Round trips, congestion, losses, deadlines and signs of life are updated in a later turn, because neither
// the peer nor the application waits for them. Flow calls settle() before it uses any of these. The caller of
// send() and take() makes sure that a turn follows (TxScheduler::note_use). The lane closes when it has sent
// as many frames as the congestion window and the pacer of the path allowed when the lane opened.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "link/link.h"
#include "multipath/path_manager.h"
#include "reliability/ack_processor.h"
#include "reliability/flow_status.h"
#include "reliability/frame_receiver.h"
#include "reliability/frame_sender.h"
#include "reliability/frame_size.h"
#include "reliability/handshake.h"
#include "reliability/liveness.h"
#include "reliability/outgoing_ack.h"
#include "reliability/send_queue.h"
#include "wire/admit.h"

namespace cluster::reliability {

class FrameLane {
 public:
  /// The parts of the flow that the lane uses.
  struct Parts {
    const FlowStatus& status;
    const Handshake& handshake;
    FrameSize& frame_size;
    multipath::PathManager& paths;
    SendQueue& queue;
    FrameSender& sender;
    AckProcessor& acks;
    FrameReceiver& receiver;
    Liveness& liveness;
    AnswerDelay& answer_delay;
  };
  /// `enabled`: tests set it to false to compare the lane with the general path.
  FrameLane(const Parts& parts, bool enabled) : parts_(parts), enabled_(enabled) {}

  bool open() const { return frames_left_ != 0; }
  void close() { frames_left_ = 0; }
  /// Opens the lane if the conditions above hold, and closes it otherwise.
  void review(Time now, wire::Integrity integrity);
  /// Tells the paths and the liveness what the lane has done since the last call.
  void settle();

  /// Returns true if send() may be called for a message whose segment has `size` bytes.
  bool accepts(std::size_t size) const { return open() && parts_.queue.takes_alone(size); }
  /// Sends the frame that SendQueue::post_alone() has queued. Returns false if the link is full. If so, the
  /// general path sends the frame.
  bool send(Time now, link::Link& link);
  /// Returns true if answer() may be called.
  bool answers() const { return accepts(wire::AnswerHeader::size()); }
  /// Sends the answer that SendQueue::post_answer() has added, or lets it wait for data. `ack_due`: the
  /// result of take(). Returns false if the general path has to send the answer.
  bool answer(Time now, link::Link& link, bool ack_due);

  /// Returns true if the frame is the one that is expected now.
  bool predicts(const wire::LoneFrame& frame, const link::Path& from) const;
  /// Records the arrival of the frame that predicts() has accepted. Returns true if the peer needs an
  /// acknowledgement at once. If so, the caller must call answer() for a write, or give the flow a turn.
  bool take(Time now, const wire::LoneFrame& frame, const link::Path& from, Time arrived);

 private:
  bool leave(Time now, link::Link& link, std::uint8_t flags);
  bool ordinary() const;
  /// Returns true if `from` is the only IP path of the flow, or its EtherType path.
  bool from_peer(const link::Path& from) const;

  Parts parts_;
  bool enabled_;
  std::size_t frames_left_ = 0;  ///< frames that the lane may still send; 0: the lane is closed
  Time heard_at_{};              ///< when take() was last called, or Time{} if not since settle()
  bool heard_by_ip_ = false;
};

inline bool FrameLane::from_peer(const link::Path& from) const {
  const link::Path& first = parts_.paths[0].address;
  const bool same_mac = !from.mac_known || (first.mac_known && from.same_mac(first)) || first.by_routes;
  return same_mac && from.link == first.link && first.doubts == 0 && from.to == first.to;
}

inline bool FrameLane::predicts(const wire::LoneFrame& frame, const link::Path& from) const {
  return open() && parts_.status.alive() && frame.session == parts_.handshake.session() &&
         parts_.receiver.expects(frame.sequence, frame.transmission) && parts_.acks.expects(frame) &&
         from_peer(from);
}

inline bool FrameLane::take(Time now, const wire::LoneFrame& frame, const link::Path& from, Time arrived) {
  arrived = std::min(arrived, now);
  parts_.acks.take(now, frame, arrived);
  parts_.paths.learn_again(from);
  heard_at_ = now;
  heard_by_ip_ |= !from.ethertype;
  return parts_.receiver.take_expected(now, arrived, frame.transmission, frame.ack_now);
}

}  // namespace cluster::reliability
