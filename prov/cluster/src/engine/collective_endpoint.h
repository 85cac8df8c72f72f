// Connects collective operations with the endpoint. Messages to members of a team are sent like all other
// messages. A receive from a lost member ends at once, because no collective operation continues with the
// member's next incarnation.
#pragma once

#include "collective/collectives.h"
#include "engine/event_loop.h"
#include "protocol/messenger.h"
#include "transport/peer_table.h"

namespace cluster::engine {

class CollectiveEndpoint final : public collective::TeamEndpoint {
 public:
  CollectiveEndpoint(const EngineParts& parts, PeerTable& peers, protocol::Messenger& messenger,
                     EventLoop& loop)
      : parts_(parts), peers_(peers), messenger_(messenger), loop_(loop) {}

  collective::Collectives& collectives() { return collectives_; }

  bool has_multicast() const override { return parts_.multicast != nullptr; }
  std::uint64_t open_group(const std::vector<SocketAddress>& members, std::uint64_t key) override;
  bool group_joined(std::uint64_t group) const override { return loop_.groups().joined(group); }
  void expect(std::uint64_t group, bool waits) override { loop_.groups().expect(group, waits); }
  void close_group(std::uint64_t group) override { loop_.groups().leave(group); }
  Status send(const protocol::SendOp& op) override { return loop_.send(op); }
  Status receive(const protocol::RecvOp& op) override;
  void cancel(const void* context) override { messenger_.matcher().cancel(context); }
  std::size_t discard(std::uint64_t tag, std::uint64_t ignore) override;

 private:
  const EngineParts& parts_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  EventLoop& loop_;
  collective::Collectives collectives_{*this};
};

}  // namespace cluster::engine
