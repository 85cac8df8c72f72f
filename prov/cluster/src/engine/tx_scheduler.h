// What leaves over the network, and when. It keeps the peers whose sessions are in use and decides in which
// turn each of their flows transmits:
//
//   posted()            after an operation: at once, or with messages that follow (packing_policy.h)
//   transmit()          flows with something to do (tx_pending): acknowledged operations complete, queued
//                       messages go on, frames leave
//   transmit_control()  the same, with the peers for which the messenger has posted control segments
//   run_timers()        flows whose deadline has passed: loss, tail loss probe, delayed acknowledgement
//
// A flow that finds no memory to transmit or to report what was acknowledged stays pending.
//
// Invariants: a peer is listed here exactly while it has a flow. No flow has an earlier deadline than its
// peer's timer. A flow that has failed is marked in the peer table and transmits nothing more.
#pragma once

#include <vector>

#include "base/environment.h"
#include "engine/packing_policy.h"
#include "engine/peer_table.h"
#include "engine/timer_heap.h"
#include "link/link.h"
#include "link/process_probe.h"
#include "protocol/messenger.h"
#include "reliability/turn_delay.h"

namespace cluster::engine {

class TxScheduler {
 public:
  /// `link` is null for an endpoint that has only shared memory: then no peer is ever added.
  TxScheduler(link::Link* link, link::ProcessProbe* probe, const Environment& environment, PeerTable& peers,
              protocol::Messenger& messenger)
      : link_(link), probe_(probe), clock_(environment.clock), log_(environment.log), peers_(peers), messenger_(messenger) {}

  /// The peer's flow is in use from now on, or no more.
  void add(Peer& peer);
  void remove(Peer& peer);
  const std::vector<Peer*>& flows() const { return flows_; }

  /// The peer's flow has something to do in this turn.
  void mark(Peer& peer) {
    if (peer.tx_pending) return;
    tx_pending_.push_back(&peer);
    peer.tx_pending = true;
  }
  /// An operation was posted to the peer's flow; `more` of the same will follow.
  void posted(Peer& peer, bool more) {
    mark(peer);
    const bool waits = more || (peer.flow->queue().may_coalesce() && packing_.may_wait());
    if (!waits) transmit(clock_.now());
  }
  bool tx_pending() const { return !tx_pending_.empty(); }
  void transmit(Time now);
  void transmit_control(Time now);
  /// Everything in the messenger that waited for a free slot or window goes on.
  void pump(Time now);
  /// The endpoint is about to close: no flow waits for a crowd any more.
  void disregard_turns();
  /// True if a flow's timer has gone off: path errors may tell why.
  bool run_timers(Time now);
  Time next_timer() const { return timers_.next(); }
  /// True if every frame was acknowledged and no acknowledgement is owed, to all peers or to those of the address vector.
  enum class Towards { all, members };
  bool quiescent(Towards towards) const;

  const reliability::TurnDelay& turns() const { return turns_; }
  PackingPolicy& packing() { return packing_; }
  const PackingPolicy& packing() const { return packing_; }

 private:
  void transmit(Time now, Peer& peer);
  void ask_kernel(Time now, Peer& peer);
  void end_probe(Peer& peer);
  void tell_of_silence(Peer& peer);

  /// Peers outside of the address vector of which a kernel is asked at a time. The others' silence ends by the peer timeout.
  static constexpr std::size_t kOthersProbedMax = 32;

  link::Link* link_;
  link::ProcessProbe* probe_;
  Clock& clock_;
  Log& log_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  std::vector<Peer*> flows_;  ///< peers with a flow
  std::vector<Peer*> tx_pending_;
  std::size_t others_probed_ = 0;
  TimerHeap timers_;
  PackingPolicy packing_;
  reliability::TurnDelay turns_;
  std::vector<carrier::Token> acked_tokens_;  ///< taken from flows, and not reported yet
};

}  // namespace cluster::engine
