// Opens rings to peers of this node, and takes the rings that peers have opened. A connection attempt tests
// whether a peer runs on this node: only then does a socket of the node have its name. A peer's ring is taken
// once this side can answer the peer. Taking it ends what this endpoint had with an earlier process of the
// same name.
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

  /// Opens a ring to the peer, or says why there is none. While the peer's queue of connections is full the
  /// result is `later`, for kQueueFullMax at most.
  transport::OpenResult open(Peer& peer, std::string& reason);
  /// As open(), but one attempt without the limit kQueueFullMax.
  transport::OpenResult try_open(Peer& peer, std::string& reason);
  /// Takes the rings that peers of this node have opened towards this endpoint since the last call.
  void accept();
  /// Checks whether peers of this node have answered the greeting of this side's rings. A process that cannot
  /// prove that it has the key is not the peer: messages then take the network.
  void advance_greetings();
  /// True if a hello is on its way, or if a ring waits until this side can answer its peer: call accept()
  /// again soon.
  bool owes_answers() const { return parts_.listener.has_half_open() || !accepted_.empty(); }

 private:
  static constexpr Duration kQueueFullMax = 1s;
  static constexpr Duration kQueueFullRetry = 1ms;

  /// A ring whose reader has not proved that it has the key.
  struct Greeting {
    SocketAddress peer;
    Time since{};
  };

  bool put_off(LocalPeer& peer);
  bool is_settled(const Greeting& greeting);
  void leave_ring(LocalPeer& peer);
  bool adopt(std::unique_ptr<Inbox>& inbox);
  const char* why_refused(Time now, const Inbox& inbox);
  const char* close_earlier(Peer& peer, const Inbox& next);
  void end_predecessor(Peer& peer, const Inbox& next);

  const ShmParts& parts_;
  LocalPeers& local_;
  std::vector<std::unique_ptr<Inbox>>
      accepted_;  ///< not empty if adopt() has put a ring off, or memory ran out
  std::vector<Greeting> greetings_;
  bool logged_refusal_ = false;
};

}  // namespace cluster::shm
