// Where this endpoint stands with each peer, and every way from one such state to another:
//
//   not met   -- an operation, or a peer's call --> opening, reached by a transport, or still not met
//   reached   -- the transport gives it up, or the peer closes --> lost (with the cause), or not met
//   lost      -- it answers, or calls itself --> reached
//
// An operation with a peer opens the nearest transport that reaches it. The peer keeps that transport until it is closed.
// The operations of a closed peer end with an error that names it, and its channel then serves its next incarnation.
//
// A lost peer may come back: a new process on its address, a node that was mended. Until it does, operations with it fail
// at once, with the cause of the loss. Each of them, and each receive that waits for it alone, has every transport look
// for the peer.
//
// A peer that was never met is called when a receive has waited for it alone for kContactAfter: otherwise the receive
// would wait forever for a peer that is dead. A peer that has closed in an orderly way is not called: receives wait for
// its next incarnation.
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

  /// Nearest first. Before anything else is called; the transports outlive this object.
  void add(Transport& transport);
  std::span<Transport* const> transports() const { return transports_; }

  // --- for operations ---
  /// Gives a carrier to a peer that has none, if some transport reaches it. If none does, the log says why.
  OpenResult open(Peer& peer);
  /// An operation with a lost peer: act(channel) takes it, and it ends at once with the cause of the loss.
  template <typename Act>
  Status fail_at_once(Peer& peer, Act&& act) {
    peer.channel.carrier = &nowhere_;
    Status status = Status::no_memory;
    enough_memory_for([&] { status = act(peer.channel); });
    messenger_.fail(peer.channel, peer.lost()->cause, false);
    return status;
  }
  /// Before a remote write or read: reaches for the peer's registered memory, if that is due.
  void reach_memory(Peer& peer) {
    if (peer.channel.rma.reached.access == nullptr) ask_for_memory(peer);
  }
  /// Calls peers that are waited for.
  void contact_awaited(Time now);

  // --- for transports ---
  /// The peer has this carrier from now on.
  void reached(Peer& peer, Transport& by, carrier::Carrier& carrier, std::size_t eager_max);
  /// The peer has called: it is not lost any more, nor has it departed.
  void called(Peer& peer) {
    if (peer.channel.carrier == nullptr) peer.reach = NotMet{};
  }
  /// The peer's carrier, to which nothing was written, ends: a transport behind `by` takes its place.
  void go_farther(Peer& peer, Transport& by, std::string reason);
  /// A process has come under the peer's name, in this incarnation. True if this endpoint has met an earlier incarnation: then
  /// the caller closes the peer. If not, signs that the peer is dead are forgotten: they may be about its predecessor.
  bool succeeds(Peer& peer, std::uint64_t epoch);
  /// The end of everything with the peer. Not while a component iterates over peers: then PeerTable::mark_failed().
  void close(Peer& peer, Status status);
  void close_failed();
  /// Now, since something of the peer's next incarnation has come.
  void close_if_failed(Peer& peer);
  /// Where the setting asks for it: if no peer is left, and one of them was lost, receives from any sender end with an error.
  /// So do those that are posted later, as long as no peer returns.
  void end_abandoned();
  /// This endpoint closes: every peer is notified.
  void announce_close();

 private:
  static constexpr Duration kContactAfter = 1s;

  /// Takes nothing.
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
  void report_loss(const Peer& peer, Status status);

  const Environment& environment_;
  const EngineSettings& settings_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  std::vector<Transport*> transports_;
  Nowhere nowhere_;
  std::vector<Peer*> awaited_;  ///< scratch of contact_awaited()
};

}  // namespace cluster::transport
