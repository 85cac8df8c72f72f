// The transport for peers of this node. It has two rings in shared memory for each peer, one in each
// direction.
//
//   down   Messenger -> Outbox -> ring           short messages: FastLane -> Outbox
//   up     LocalPeers: ring -> Messenger         short messages: ring -> FastLane
//
// To check a ring, a turn only reads memory. To check for new connections and dead peers, a turn makes system
// calls. So a turn makes the latter two checks only in three cases: the last checks were more than
// kTicksPerCheck ago, the number of the turn is a multiple of kTurnsPerCheck, or a descriptor says that a
// peer may be dead (suspects_). A turn that hurries (Turn::hurries) does not make the two checks.
#pragma once

#include <cstdint>
#include <string>

#include "shm/local_deaths.h"
#include "shm/local_memory.h"
#include "shm/local_peers.h"
#include "shm/ring_opener.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::shm {

class ShmTransport final : public transport::Transport, private PeerEvents {
 public:
  /// If `regions` is null, the libraries of the peers execute all remote accesses.
  ShmTransport(const transport::TransportContext& context, LocalListener& listener, RegionConnector* regions);
  ~ShmTransport() override;

  FastLane& lane() { return local_.lane(); }

  LocalPeers& peers() { return local_; }

  const char* name() const override { return "shm"; }
  transport::OpenResult open(Peer& peer, std::string& reason) override;
  bool look_for(Peer& peer) override;
  void close(Peer& peer) override;
  void say_goodbye(Peer& peer) override;
  bool holds(const Peer& peer) const override;
  bool vouches_for(Peer& peer) override;
  const char* advice(Status status) const override {
    return status == Status::exhausted ? " (raise the hard limit of open files there, \"ulimit -Hn\")" : "";
  }
  void report(const Peer& peer, transport::PeerStats& stats) const override;
  std::unique_ptr<carrier::MemoryAccess> reach_memory(Peer& peer) override;
  /// Reports the posted writes that their targets have taken.
  void settle_posted() {
    if (!posted_.idle()) posted_.settle(std::nullopt);
  }
  bool posted_idle() const { return posted_.idle(); }

  bool receive(transport::Turn& turn) override;
  void posted(Peer& peer, bool) override { local_.lane().review(parts_.of(peer)); }
  bool holding() const override { return local_.holding(); }
  void receive_held(std::uint32_t turn) override { local_.receive_held(turn); }
  bool may_be_skipped() const override { return !local_.holding(); }

  bool prepare_sleep() override;
  Time deadline() const override;
  bool wants_turn() const override;

 private:
  /// Watches one descriptor of the listener: the one for connections, or the doorbell.
  struct Descriptor final : transport::WakeSource {
    using Action = void (ShmTransport::*)();
    Descriptor(ShmTransport& owner, Action on_input) : transport(owner), action(on_input) {}
    void on_ready(bool) override { (transport.*action)(); }

    ShmTransport& transport;
    Action action;
  };

  void on_connection() { opener_.accept(); }
  void on_doorbell();
  void peer_ready(LocalPeer& peer) override;
  void check(transport::Turn& turn);

  ShmParts parts_;
  RegionConnector* const regions_;
  PostedWrites posted_;
  LocalPeers local_;
  LocalDeaths deaths_;
  RingOpener opener_;
  Descriptor connections_{*this, &ShmTransport::on_connection};
  Descriptor doorbell_{*this, &ShmTransport::on_doorbell};
  std::uint64_t checked_at_ = 0;  ///< time of the last check, in ticks
  bool suspects_ = false;         ///< there is a peer with LocalPeer::suspect
};

}  // namespace cluster::shm
