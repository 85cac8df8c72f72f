// Which carrier reaches a peer: this endpoint's own queue, a ring in shared memory, or a flow over the
// network. Chosen on first use of the peer and kept until the peer is closed. Whether a peer lives on this
// node is found out by connecting to it: only then does its name exist among the sockets of this node.
//
// Beside the carrier, its registered memory may be in reach (carrier/remote_regions.h): asked for with the first
// remote access.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/admission_control.h"
#include "engine/engine_parts.h"
#include "engine/local_peers.h"
#include "engine/peer_closer.h"
#include "engine/session_table.h"

namespace cluster::engine {

/// `later`: it is on this node, and any user of the node can fill its queue of connections.
enum class Reach : std::uint8_t { reached, later, unreached };

class CarrierSelector {
 public:
  CarrierSelector(const EngineParts& parts, PeerTable& peers, AdmissionControl& admission, LocalPeers& local,
                  SessionTable& sessions, PeerCloser& closer)
      : parts_(parts),
        peers_(peers),
        admission_(admission),
        local_(local),
        sessions_(sessions),
        closer_(closer) {}

  /// Gives the peer a carrier, or says that none reaches it (the log says why). A ring is waited for kQueueFullMax at most.
  Reach open(Peer& peer);
  /// The same if the peer is on this node, or over the network.
  bool open_ring(Peer& peer) {
    std::string reason;
    return open_ring(peer, reason) == Reach::reached;
  }
  void open_session(Peer& peer) {
    sessions_.open(peer, {peer.name(), {}, false, multipath::rail_towards(parts_.rails, peer.name())});
  }
  /// Before a remote write or read: reaches for the peer's regions, if that is due.
  void reach_regions(Peer& peer) {
    if (peer.channel.rma.reached.regions == nullptr && parts_.region_connector != nullptr)
      connect_regions(peer);
  }
  /// Takes the rings that peers of this node have opened towards this endpoint since the last call.
  void accept();
  /// A ring that has come waits until its peer can be answered: accept() again soon.
  bool owes_answers() const { return !accepted_inboxes_.empty(); }
  /// Looks whether peers of this node have answered the greeting of this side's rings. One that cannot show the key is
  /// not the peer: that is reached over the network.
  void advance_greetings();

 private:
  static constexpr Duration kQueueFullMax = 1s;
  static constexpr Duration kQueueFullRetry = 1ms;

  /// A ring whose reader has not shown the key.
  struct Greeting {
    SocketAddress peer;
    Time since{};
  };

  void connect_regions(Peer& peer);
  Reach open_ring(Peer& peer, std::string& reason);
  bool put_off(Peer& peer);
  bool is_settled(const Greeting& greeting);
  void leave_ring(Peer& peer);
  bool adopt(std::unique_ptr<shm::Inbox>& inbox);
  const char* why_refused(Time now, const shm::Inbox& inbox);
  const char* close_earlier(Peer& peer, const shm::Inbox& next);
  void end_predecessor(Peer& peer, const shm::Inbox& next);

  const EngineParts& parts_;
  PeerTable& peers_;
  AdmissionControl& admission_;
  LocalPeers& local_;
  SessionTable& sessions_;
  PeerCloser& closer_;
  std::vector<std::unique_ptr<shm::Inbox>> accepted_inboxes_;  ///< more than none if adopt() has put it off, or memory ran out
  std::vector<Greeting> greetings_;
  bool logged_refusal_ = false;
  bool logged_loopback_ = false;  ///< that a peer names itself so
};

}  // namespace cluster::engine
