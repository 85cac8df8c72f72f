// Lets one end of a connection (FI_EP_MSG), or a passive endpoint, use the engine. Connection messages are
// sent like all other messages. When they arrive, they wait in the store of unexpected messages until the end
// of the turn.
//
// The endpoint has an address table of its own. Handle 0 leads to the peer. Until there is a peer, handle 0
// leads to this endpoint itself, which never sends to itself. Each receive of the application names handle 0
// as its sender, so no message of a stranger ever matches the receive. The other entries are endpoints to
// which connection messages go. A passive endpoint removes such an entry when the message to that endpoint
// has completed or failed. So a passive endpoint forgets the endpoints that have requested a connection.
//
// To watch a peer, the endpoint posts a receive that no message matches. As long as a receive waits for a
// peer, the engine checks that this peer is alive. If the peer is lost, the engine ends the receive.
#pragma once

#include <deque>
#include <optional>

#include "connection/connection_end.h"
#include "connection/passive_end.h"
#include "engine/event_loop.h"
#include "protocol/messenger.h"
#include "transport/peer_table.h"

namespace cluster::engine {

class ConnectionEndpoint final : public connection::Courier, public protocol::InternalListener {
 public:
  /// The handle under which the application's operations reach the peer.
  static constexpr std::uint64_t kPeer = 0;

  ConnectionEndpoint(const SocketAddress& name, PeerTable& peers, protocol::Messenger& messenger,
                     EventLoop& loop, transport::PeerReach& reach)
      : peers_(peers), messenger_(messenger), loop_(loop), reach_(reach) {
    addresses_.insert(name);
  }

  void open(connection::ConnectionListener& listener) { connection_.emplace(*this, listener); }
  void open(connection::RequestListener& listener) { listener_.emplace(*this, listener); }
  connection::ConnectionEnd& connection() { return *connection_; }
  connection::PassiveEnd& listener() { return *listener_; }
  const transport::AddressTable& addresses() const { return addresses_; }

  void send(const SocketAddress& to, const connection::Message& message) override;
  void watch(const SocketAddress& peer) override;
  void end_watch() override;
  void set_peer(const SocketAddress& peer) override;
  void cancel_receives() override;
  bool receiving(const SocketAddress& peer) override;
  void leave(const SocketAddress& peer) override;

  void sent(void* context, Status status) override;
  void received(void* context, Status status, std::size_t length) override;
  bool wanted(std::uint64_t tag, std::uint64_t data, bool member) override;
  void member_lost(const SocketAddress& /*name*/, Status /*cause*/) override {}
  void advance() override;

 private:
  struct Letter {
    SocketAddress to;
    std::uint64_t id = 0;
    bool asks = false;         ///< the receiver confirms or refuses the message
    std::uint64_t handle = 0;  ///< the handle of `to`, if this is a passive endpoint
    connection::MessageBytes bytes{};
  };

  std::uint64_t handle_of(const SocketAddress& name);
  bool deliver(const Letter& letter);
  bool take_stored();
  void drop_earlier(const protocol::UnexpectedMessage& message);
  bool fetch(const protocol::UnexpectedMessage& announced);
  void process(const SocketAddress& from, const connection::MessageBytes& bytes);

  PeerTable& peers_;
  protocol::Messenger& messenger_;
  EventLoop& loop_;
  transport::PeerReach& reach_;
  transport::AddressTable addresses_;
  std::optional<connection::ConnectionEnd> connection_;
  std::optional<connection::PassiveEnd> listener_;
  std::deque<Letter> unsent_;  ///< messages that no carrier has taken yet
  /// A message that was announced, because the sender had no credit left, and that is being pulled.
  struct Fetched {
    bool under_way = false;
    SocketAddress from;
    connection::MessageBytes bytes{};
  } fetched_;
  Peer* watched_ = nullptr;
  std::optional<connection::PeerLoss> loss_;  ///< a loss that advance() has to report
};

}  // namespace cluster::engine
