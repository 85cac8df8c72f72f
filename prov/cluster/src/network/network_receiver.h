// Processes received frames: link -> admission (wire/admit.h) -> session -> flow -> messenger.
//
// The frames of a long payload arrive back to back and continue each other (wire/admit.h). If all of them are
// new, this class delivers them together, otherwise one by one.
//
// A frame takes the frame lane if its flow expects this frame next, and if the frame contains one short
// message for a posted receive, a short write, or the answer to one. Then a few checks replace all of the
// above (reliability/frame_lane.h).
//
// If the store of unexpected messages has no space for a message, the flow holds the segment that begins the
// message. The flow acknowledges neither the frame of that segment nor the frames behind it, so the sender
// waits. receive_held() continues as soon as there may be space.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "link/link.h"
#include "network/answer_limiter.h"
#include "network/datagram_endpoint.h"
#include "network/flood_watch.h"
#include "network/session_acceptor.h"
#include "network/session_table.h"
#include "network/tx_scheduler.h"
#include "network/unknown_budget.h"
#include "protocol/messenger.h"
#include "protocol/short_messages.h"
#include "protocol/short_writes.h"
#include "transport/arrival.h"
#include "transport/peer_table.h"
#include "wire/admit.h"

namespace cluster::network {

class NetworkReceiver {
 public:
  NetworkReceiver(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger,
                  transport::AdmissionControl& admission, TxScheduler& tx, SessionTable& sessions,
                  PeerReach& reach);
  /// Returns the datagram endpoint, which takes all frames. The result is empty for other types of endpoints.
  std::optional<DatagramEndpoint>& datagrams() { return datagrams_; }
  UnknownBudget& budget() { return budget_; }

  /// Processes at most a few bursts of received frames, and returns the number of frames. Sets `now` to a
  /// time after the arrival of all of them.
  std::size_t receive(Time& now);
  enum class Look : std::uint8_t {
    nothing,  ///< there was no frame
    taken,    ///< all frames have taken the frame lane
    left,     ///< frames are left, and the next receive() begins with them
  };
  /// Takes one burst from the link, and processes its frames until one of them cannot take the frame lane.
  Look receive_short(protocol::DirectSuccesses& direct);
  /// Called if receive_short() has found nothing and receive() follows. Then receive() need not poll the link
  /// again.
  void found_nothing() { left_ = std::span<const link::InFrame>(); }
  /// Returns true if the last receive() has found only frames that took the frame lane.
  bool only_lone() const { return only_lone_; }
  protocol::ShortMessages& short_messages() { return short_messages_; }
  protocol::ShortWrites& short_writes() { return short_writes_; }
  /// Returns how many times this endpoint has polled the link since a poll last found a frame.
  std::uint32_t empty_polls() const { return empty_polls_; }
  /// Returns true if a flow holds a message for which the store had no space.
  bool holding() const { return holding_; }
  /// Returns when receive() must be called even if no frame arrives, or kNever.
  Time deadline() const { return flood_.deadline(); }
  void receive_held(Time now);
  /// Reads ICMP errors. Each read costs a system call, so unless `force` is true, this function reads at most
  /// once per kPathErrorInterval.
  void read_path_errors(Time now, bool force);

 private:
  std::size_t receive_from(Time now, const link::InFrame& frame);
  Look take_burst(std::span<const link::InFrame> frames, protocol::DirectSuccesses& direct);
  bool take_lone(Time now, const link::InFrame& frame, protocol::DirectSuccesses& direct);
  [[gnu::always_inline]] bool take_lone(Time now, RemotePeer& peer, const wire::LoneFrame& lone,
                                        const link::InFrame& frame, protocol::DirectSuccesses& direct);
  /// Returns the frames that receive_short() has left, or takes a burst from the link.
  std::span<const link::InFrame> next_burst() {
    if (left_) return *std::exchange(left_, std::nullopt);
    return std::span(frames_).first(parts_.link->receive_burst(frames_));
  }
  bool take_access(Time now, RemotePeer& peer, const wire::LoneFrame& lone, const link::InFrame& frame,
                   protocol::DirectSuccesses& direct);
  bool arrive(Time now, RemotePeer& peer, const wire::LoneFrame& lone, const link::InFrame& frame);
  void refuse(Time now, wire::Refusal refusal, const link::InFrame& frame);
  void watch(Time now);
  bool check(wire::RunView& run, const RemotePeer& peer);
  void receive_frame(Time now, const wire::FrameView& view, const link::InFrame& frame);
  RemotePeer* taker_of_run(const wire::FrameView& first, const wire::RunView& run,
                           const link::InFrame& frame) const;
  void receive_in_flow(Time now, RemotePeer* peer, const wire::FrameView& view, const link::InFrame& frame,
                       const wire::RunView* run);
  void take_in(Time now, RemotePeer& peer, const wire::FrameView& view, const link::InFrame& frame,
               const wire::RunView* run);
  void deliver(RemotePeer& peer, const protocol::ArrivalInfo& info);
  bool still_holds(Time now, RemotePeer& peer);
  bool hold(RemotePeer& peer, ConstBytes segments);

  const NetworkParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  transport::Arrivals arrivals_;
  UnknownBudget budget_;
  TxScheduler& tx_;
  SessionTable& sessions_;
  FloodWatch flood_;
  AnswerLimiter answers_;
  SessionAcceptor acceptor_;
  const wire::Integrity integrity_;
  std::optional<DatagramEndpoint> datagrams_;
  protocol::ShortMessages short_messages_;
  protocol::ShortWrites short_writes_;
  std::array<link::InFrame, link::kBurstMax> frames_;
  /// The frames of a burst that are left for receive(). If the span is empty, receive_short() has just found
  /// the link empty.
  std::optional<std::span<const link::InFrame>> left_;
  bool only_lone_ = false;
  std::uint32_t empty_polls_ = 0;
  bool holding_ = false;
  std::vector<std::uint32_t> holding_sessions_;  ///< sessions whose flows hold a segment
  const RemotePeer* resumed_ = nullptr;          ///< the peer whose held segment is delivered now
  Time next_path_errors_{};
  std::array<link::PathError, 8> path_errors_;  ///< the errors of the last read
  bool sealed_reported_ = false;
};

inline NetworkReceiver::Look NetworkReceiver::receive_short(protocol::DirectSuccesses& direct) {
  const std::span<const link::InFrame> frames = next_burst();
  if (frames.empty()) {
    ++empty_polls_;
    return Look::nothing;
  }
  return take_burst(frames, direct);
}

}  // namespace cluster::network
