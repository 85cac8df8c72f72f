// Opens rings to peers of this node, and adopts the rings that peers have opened. If a peer runs on this
// node, a socket on this node has the peer's name. So an attempt to connect to that name shows whether the
// peer runs here. A peer's ring is adopted as soon as this side can answer the peer. Before the adoption,
// this side closes what it still has open with an earlier process of the same name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shm/local_peers.h"
#include "transport/transport_context.h"

namespace cluster::shm {

class RingOpener {
 public:
  RingOpener(const ShmParts& parts, LocalPeers& local) : parts_(parts), local_(local) {}

  /// Opens a ring to the peer. On failure, sets `reason` to the cause. While the peer's queue of connections
  /// is full, returns `later`, but at most for kQueueFullMax.
  transport::OpenResult open(Peer& peer, std::string& reason);
  /// Like open(), but sets no time for a next attempt, so kQueueFullMax does not apply.
  transport::OpenResult try_open(Peer& peer, std::string& reason);
  /// Adopts the rings that peers on this node have opened to this endpoint since the last call.
  void accept();
  /// Checks whether peers of this node have answered the greetings of this endpoint's rings. A process that
  /// cannot prove that it has the key is not the peer, so messages to the peer use the network.
  void advance_greetings();
  /// Returns true if a connection still waits for its hello, or a ring waits until this side can answer its
  /// peer. If so, the caller must soon call accept() again.
  bool owes_answers() const { return parts_.listener.has_half_open() || !accepted_.empty(); }

 private:
  static constexpr Duration kQueueFullMax = 1s;
  static constexpr Duration kQueueFullRetry = 1ms;

  /// A ring whose reader has not yet proved that it has the key.
  struct Greeting {
    SocketAddress peer;
    Time since{};
  };

  bool put_off(LocalPeer& peer);
  bool is_settled(const Greeting& greeting);
  void leave_ring(LocalPeer& peer);
  bool adopt(std::unique_ptr<Inbox>& inbox);
  const char* why_refused(Time now, Inbox& inbox);
  const char* close_earlier(Peer& peer, Inbox& next);
  void end_predecessor(Peer& peer, Inbox& next);

  const ShmParts& parts_;
  LocalPeers& local_;
  /// The rings that are not adopted yet. There are some if adopt() has left a ring for later, or if there was
  /// no memory.
  std::vector<std::unique_ptr<Inbox>> accepted_;
  std::vector<Greeting> greetings_;
  bool logged_refusal_ = false;
};

}  // namespace cluster::shm
