// Decides which flows transmit over the network, and when. It keeps the peers whose sessions are in use, and
// lets their flows transmit in these functions:
//
//   posted()            after an operation: at once, or together with later messages (packing_policy.h)
//   transmit()          flows with something to do (tx_pending): acknowledged operations complete, queued
//                       messages continue, frames are transmitted
//   run_timers()        flows whose deadline has passed: loss, tail loss probe, delayed acknowledgement
//
// Invariants: a peer is listed here if and only if it has a flow. The deadline of a flow is never earlier
// than the timer of its peer, except between note_use() and the turn that settles. If a flow has failed, its
// peer is marked in the peer table, and the flow transmits nothing more.
#pragma once

#include <vector>

#include "base/environment.h"
#include "link/link.h"
#include "link/process_probe.h"
#include "network/network_parts.h"
#include "network/outage_watch.h"
#include "network/timer_heap.h"
#include "protocol/messenger.h"
#include "reliability/retransmission_timer.h"
#include "transport/packing_policy.h"

namespace cluster::network {

class TxScheduler {
 public:
  TxScheduler(const NetworkParts& parts, PeerTable& peers, protocol::Messenger& messenger,
              transport::PackingPolicy& packing, Outage& outage)
      : parts_(parts),
        clock_(parts.environment.clock),
        peers_(peers),
        messenger_(messenger),
        packing_(packing),
        outage_(outage),
        watch_(outage, parts.settings.outage, parts.settings.peer_timeout) {}

  /// Adds the peer's flow to the flows in use.
  void add(RemotePeer& peer);
  /// Allocates memory for `flows` flows, so that add() needs none for them.
  void reserve(std::size_t flows);
  void remove(RemotePeer& peer);
  const std::vector<RemotePeer*>& flows() const { return flows_; }

  /// Records that the peer's flow has work to do in this turn. Closes the frame lane of the flow until the
  /// flow has transmitted.
  void mark(RemotePeer& peer) {
    if (peer.flow != nullptr) peer.flow->lane().close();
    urgent_ = true;
    list(peer);
  }
  /// Records that the frame lane of the peer was used, so that a later turn has to settle what the lane has
  /// left (reliability/frame_lane.h). That turn also sets the timers, which may be late until then. The turn
  /// follows the first poll that finds nothing, but comes at the latest after kUsesMax uses.
  [[gnu::always_inline]] void note_use(RemotePeer& peer) {
    urgent_ |= ++uses_ == kUsesMax;
    list(peer);
  }
  /// Called when an operation was posted to the peer's flow. `more`: similar operations will follow at once.
  void posted(RemotePeer& peer, bool more) {
    mark(peer);
    const bool waits =
        more || (!peer.channel.busy() && peer.flow->queue().may_coalesce() && packing_.may_wait());
    if (!waits) transmit(clock_.now());
  }
  bool tx_pending() const { return !tx_pending_.empty(); }
  /// Returns true if the next turn has to transmit even if all its arrivals take the frame lane.
  bool urgent() const { return urgent_; }
  /// Returns true if a frame lane was used since the last transmit().
  bool unsettled() const { return uses_ != 0; }
  /// Completes the operations whose last frame the peer has acknowledged.
  void complete_acked(RemotePeer& peer, protocol::DirectSuccesses& direct) {
    peer.flow->take_acked(acked_tokens_);
    messenger_.acked(acked_tokens_, direct);
  }
  void transmit(Time now);
  /// Called when the endpoint is about to close. After this call, no flow makes allowance for late turns.
  void disregard_turns();
  /// Fires the timers that have expired. Returns true if a timer of a flow has fired. In this case, the
  /// caller should read path errors, because they may show why the peer is silent.
  bool run_timers(Time now);
  Time next_timer() const { return timers_.next(); }
  /// Returns true if peers have acknowledged every frame and this side has sent every acknowledgement.
  /// `towards`: whether all peers count, or only members.
  bool quiescent(transport::Towards towards) const;

  const reliability::TurnDelay& turns() const { return turns_; }
  const Outage& outage() const { return outage_; }

 private:
  void list(RemotePeer& peer) {
    if (peer.tx_pending) return;
    tx_pending_.push_back(&peer);
    peer.tx_pending = true;
  }
  void settled() {
    urgent_ = false;
    uses_ = 0;
  }
  void transmit(Time now, RemotePeer& peer);
  void on_timer(Time now, RemotePeer& peer);
  void ask_kernel(Time now, RemotePeer& peer);
  void end_probe(RemotePeer& peer);
  void tell_of_silence(RemotePeer& peer);
  void send_keep_alive(Time now, RemotePeer& peer);
  void review(Time now);
  void tell_of_outage(Time now, OutageWatch::News news);

  /// The largest number of unknown peers whose kernels are asked at the same time. Sessions of further silent
  /// unknown peers end after the peer timeout.
  static constexpr std::size_t kOthersProbedMax = 32;
  static constexpr std::size_t kUsesMax = 56;  ///< uses of frame lanes between two turns that settle

  const NetworkParts& parts_;
  Clock& clock_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  std::vector<RemotePeer*> flows_;  ///< the peers that have a flow
  std::vector<RemotePeer*> tx_pending_;
  bool urgent_ = false;   ///< mark() was called, or frame lanes were used kUsesMax times
  std::size_t uses_ = 0;  ///< calls of note_use() since the last transmit()
  std::size_t others_probed_ = 0;
  TimerHeap timers_;
  transport::PackingPolicy& packing_;
  reliability::TurnDelay turns_;
  const Outage& outage_;
  OutageWatch watch_;
  Timer review_;                              ///< fires at the next review of `watch_`; has no owner
  std::vector<carrier::Token> acked_tokens_;  ///< the tokens just taken from a flow
};

}  // namespace cluster::network
