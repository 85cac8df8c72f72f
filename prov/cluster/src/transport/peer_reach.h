// The state of this endpoint towards each peer, and every transition:
//
//   not met   -- an operation, or a peer's call --> opening, reached by a transport, or still not met
//   reached   -- the transport gives it up, or the peer closes --> lost (with the cause), or not met
//   lost      -- the peer answers, or calls --> reached
//
// An operation with a peer opens the nearest transport that reaches it. The peer keeps that transport until
// the peer is closed. The operations of a closed peer end with an error that names it. Its channel then
// serves its next incarnation.
//
// A lost peer may come back: as a new process at its address, or on a repaired node. Until then, operations
// with it fail at once, with the cause of the loss. Each of them, and each receive that waits for the peer
// alone, makes every transport look for the peer.
//
// This endpoint calls a peer that was never met when a receive has waited for it alone for kContactAfter.
// Otherwise the receive would wait forever for a dead peer. It does not call a peer that has closed in an
// orderly way: receives wait for its next incarnation.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/environment.h"
#include "protocol/messenger.h"
#include "transport/engine_settings.h"
#include "transport/peer_table.h"
#include "transport/transport.h"

namespace cluster::transport {

class PeerReach {
 public:
  PeerReach(const Environment& environment, const EngineSettings& settings, PeerTable& peers,
            protocol::Messenger& messenger)
      : environment_(environment), settings_(settings), peers_(peers), messenger_(messenger) {}

  /// Adds the next transport, nearest first. Call it before any other method. The transports outlive this
  /// object. Throws if there are more than Peer::kTransportsMax.
  void add(Transport& transport);
  /// The endpoint lacks a transport that users expect: what the log says if a peer is not reached by it.
  void note_lacking(const char* what) { add_reason(lacking_, what); }
  std::span<Transport* const> transports() const { return transports_; }

  // --- for operations ---
  /// Opens a carrier to a peer that has none. If no transport reaches the peer, the log says why.
  OpenResult open(Peer& peer);
  /// Starts an operation with a lost peer: act(channel) takes it, and it ends at once with the cause of the
  /// loss.
  template <typename Act>
  Status fail_at_once(Peer& peer, Act&& act) {
    peer.channel.carrier = &nowhere_;
    Status status = Status::no_memory;
    enough_memory_for([&] { status = act(peer.channel); });
    messenger_.fail(peer.channel, peer.lost()->cause, false);
    return status;
  }
  /// Call it before a remote write or read. It reaches for the peer's registered memory if that is due.
  void reach_memory(Peer& peer) {
    if (peer.channel.rma.reached.access == nullptr) ask_for_memory(peer);
  }
  /// Calls peers for which receives have waited too long. Returns true if receives wait for others that are
  /// not met: call it again soon.
  bool contact_awaited(Time now);

  // --- for transports ---
  /// Makes `carrier` the peer's carrier.
  void reached(Peer& peer, Transport& by, carrier::Carrier& carrier, std::size_t eager_max);
  /// The peer has called, so it is neither lost nor departed.
  void called(Peer& peer) {
    if (peer.channel.carrier == nullptr) peer.reach = NotMet{};
  }
  /// The peer's carrier ends without having taken a segment. A transport farther than `by` takes its place.
  void go_farther(Peer& peer, Transport& by, std::string reason);
  /// A process has come under the peer's name, with this epoch. Returns true if this endpoint has met an
  /// earlier incarnation: the caller then closes the peer. Otherwise this forgets signs that the peer is
  /// dead: they may be about its predecessor.
  bool succeeds(Peer& peer, std::uint64_t epoch);
  /// Ends everything with the peer. While a component iterates over peers, call PeerTable::mark_failed()
  /// instead.
  void close(Peer& peer, Status status);
  void close_failed();
  /// Closes a failed peer now, because a frame or ring of its next incarnation has come.
  void close_if_failed(Peer& peer);
  /// If the setting asks for it, no peer is left, and one was lost: ends receives from any sender with an
  /// error. Receives that are posted later also end, until a peer returns.
  void end_abandoned();
  /// This endpoint closes: notifies every peer.
  void announce_close();

 private:
  static constexpr Duration kContactAfter = 1s;

  /// A carrier that takes nothing.
  class Nowhere final : public carrier::Carrier {
   public:
    Nowhere() : Carrier({}) {}
    std::size_t payload_max(const wire::Segment&) const override { return 0; }
    bool post(const wire::Segment&, const Gather&, carrier::PayloadMode, carrier::Token) override {
      return false;
    }
  };

  OpenResult open_first(Peer& peer, std::size_t from, std::string reason);
  void ask_for_memory(Peer& peer);
  bool asking(const Peer& peer) const;
  void log_end(const Peer& peer, Status status, bool orderly);
  std::string timeout_text(const Peer& peer, Status status) const;
  const char* advice(const Peer& peer, Status status) const;
  void report_loss(const Peer& peer, Status status);

  const Environment& environment_;
  const EngineSettings& settings_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  std::vector<Transport*> transports_;
  std::string lacking_;
  Nowhere nowhere_;
  std::vector<Peer*> awaited_;  ///< scratch of contact_awaited()
};

}  // namespace cluster::transport
