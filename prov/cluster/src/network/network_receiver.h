// The way of a received frame: link -> gate (wire/admit.h) -> session -> flow -> messenger.
//
// The frames of a long payload arrive back to back and continue each other (wire/admit.h). If all of them are
// new, they are delivered together; otherwise one by one.
//
// If the unexpected store has no space for a message, the flow holds the segment that begins it. The flow
// acknowledges neither that frame nor the frames behind it, so the sender waits. receive_held() goes on as
// soon as there may be space.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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
#include "transport/arrival.h"
#include "transport/peer_table.h"
#include "wire/admit.h"

namespace cluster::network {

class NetworkReceiver {
 public:
  NetworkReceiver(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger,
                  transport::AdmissionControl& admission, TxScheduler& tx, SessionTable& sessions,
                  PeerReach& reach);
  /// Returns the endpoint of datagrams, which takes all frames; nothing for other endpoints.
  std::optional<DatagramEndpoint>& datagrams() { return datagrams_; }
  UnknownBudget& budget() { return budget_; }

  /// Takes in what the link has, and returns the number of frames. All of them had come by `now`, which it
  /// sets.
  std::size_t receive(Time& now);
  /// Calls of receive() since the last one that found a frame.
  std::uint32_t empty_polls() const { return empty_polls_; }
  /// Returns true if flows hold messages.
  bool holding() const { return holding_; }
  /// When to call receive() even if no frame comes; kNever: not at all.
  Time deadline() const { return flood_.deadline(); }
  void receive_held(Time now);
  /// Reads ICMP errors. That costs a system call, so it happens at most once per kPathErrorInterval unless
  /// forced.
  void read_path_errors(Time now, bool force);

 private:
  std::size_t receive_from(Time now, const link::InFrame& frame);
  void refuse(Time now, wire::Refusal refusal, const link::InFrame& frame);
  void watch(Time now);
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
  std::array<link::InFrame, link::kBurstMax> frames_;
  std::uint32_t empty_polls_ = 0;
  bool holding_ = false;
  std::vector<std::uint32_t> holding_sessions_;  ///< sessions whose flows hold a segment
  const RemotePeer* resumed_ = nullptr;          ///< the peer whose held segment is delivered now
  Time next_path_errors_{};
  std::array<link::PathError, 64> path_errors_;  ///< the errors of the last read
  bool sealed_reported_ = false;
};

}  // namespace cluster::network
