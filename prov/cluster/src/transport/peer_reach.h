// Decides through which transport each peer is reached. The states of a peer (Peer::reach) and their
// transitions:
//
//   not met, opening
//             -- an operation, or the peer calls --> opening, reached by a transport, or unchanged
//             -- no transport reaches the peer for which a receive waits --> lost
//   reached   -- the transport gives the peer up, or the peer closes --> lost (with the cause), or not met
//   lost      -- the peer answers, or the peer calls --> reached by a transport
//
// A peer calls when it opens a session or a ring to this endpoint.
//
// The first operation with a peer opens a carrier through the nearest transport that reaches the peer. The
// peer keeps this transport until the peer is closed. When a peer is closed, the operations with it end with
// an error that names the peer. After that the peer's channel serves the peer's next incarnation.
//
// A lost peer may come back, as a new process at its address or because its node was repaired. Until then,
// operations with it fail at once with the cause of the loss. Each such operation makes the transports check
// whether the peer is back. A receive that waits only for this peer makes them check after kContactAfter.
//
// A receive may wait for a single peer, although this endpoint has no carrier to that peer. After
// kContactAfter, this endpoint opens a carrier to the peer. Otherwise the receive would wait forever if the
// peer is dead. This endpoint does not contact a peer that has closed in an orderly way, because receives
// wait for its next incarnation.
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

  /// Adds a transport that is farther than those added before. All transports must be added before any other
  /// method is called, and must outlive this object. Throws if there are more than Peer::kTransportsMax.
  void add(Transport& transport);
  /// Records that the endpoint lacks a transport that users expect. `what`: a text for the log, in case a
  /// peer cannot be reached.
  void note_lacking(const char* what) { add_reason(lacking_, what); }
  std::span<Transport* const> transports() const { return transports_; }

  // --- for operations ---
  /// Opens a carrier to a peer that has none. If no transport reaches the peer, logs the reason.
  OpenResult open(Peer& peer);
  /// Starts an operation with a lost peer and ends it at once with the cause of the loss. act(channel) must
  /// start the operation.
  template <typename Act>
  Status fail_at_once(Peer& peer, Act&& act) {
    peer.channel.carrier = &nowhere_;
    Status status = Status::no_memory;
    enough_memory_for([&] { status = act(peer.channel); });
    messenger_.fail(peer.channel, peer.lost()->cause, false);
    return status;
  }
  /// Must be called before a remote write or read. If this side has no access to the peer's registered
  /// memory, the function sometimes asks the transport for access. The number of operations between two
  /// requests grows.
  void reach_memory(Peer& peer) {
    if (peer.channel.rma.reached.access == nullptr) ask_for_memory(peer);
  }
  /// Opens carriers to the peers for which receives have waited for kContactAfter. Returns true if receives
  /// wait for further peers without a carrier. If so, the caller must call this function again soon.
  bool contact_awaited(Time now);

  // --- for transports ---
  /// Makes `carrier` the peer's carrier.
  void reached(Peer& peer, Transport& by, carrier::Carrier& carrier, std::size_t eager_max);
  /// A transport calls this when the peer has opened a carrier to this endpoint. After that the peer counts
  /// neither as lost nor as departed.
  void called(Peer& peer) {
    if (peer.channel.carrier == nullptr) peer.reach = NotMet{};
  }
  /// Closes the carrier of transport `by`. That carrier must not have taken a segment yet. Then opens a
  /// carrier through a transport that is farther than `by`. `reason`: why `by` does not reach the peer.
  void go_farther(Peer& peer, Transport& by, std::string reason);
  /// A transport runs this when a process opens a session or a ring under the peer's name, with this epoch.
  /// Returns true if this endpoint has met an earlier incarnation of the peer. In this case the transport
  /// must close the peer. Otherwise drops all signs that the peer is dead, because they may concern an
  /// earlier incarnation.
  bool succeeds(Peer& peer, std::uint64_t epoch);
  /// Ends all operations with the peer and closes its carrier. While a component iterates over peers, call
  /// PeerTable::mark_failed() instead.
  void close(Peer& peer, Status status);
  /// Tells the peer that this side wants nothing more from it. Ends all operations with the peer with
  /// Status::canceled, and closes its carrier. The peer does not count as lost.
  void leave(Peer& peer);
  void close_failed();
  /// Closes the peer now if it is marked as failed. Called when a frame or ring of the peer's next
  /// incarnation has arrived.
  void close_if_failed(Peer& peer);
  /// Ends receives from any sender with an error if three conditions are true. The setting `end_abandoned` is
  /// on. At least one peer is lost. No peer except this endpoint itself is reached. The engine also calls
  /// this function whenever a receive from any sender is posted. So later receives end as well, until a peer
  /// is reached again.
  void end_abandoned();
  /// Called when the application has closed this endpoint. From then on, the loss of a peer is no warning if
  /// the application waits for no operation with the peer.
  void begin_close() { closing_ = true; }
  /// Tells every peer that this endpoint closes.
  void announce_close();

 private:
  static constexpr Duration kContactAfter = 1s;

  /// A carrier that refuses every segment.
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
  std::string loss_detail(const Peer& peer, Status status) const;
  const char* advice(const Peer& peer, Status status) const;
  void report_loss(const Peer& peer, Status status);

  const Environment& environment_;
  const EngineSettings& settings_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  std::vector<Transport*> transports_;
  std::string lacking_;
  bool closing_ = false;
  Nowhere nowhere_;
  std::vector<Peer*> awaited_;  ///< used only inside contact_awaited(); kept to reuse its memory
};

}  // namespace cluster::transport
