// The transport that reaches peers on other nodes over the network. It has a session with each peer. A
// session is a flow of numbered frames over the endpoint's link.
//
//   down   Messenger -> Flow::queue() -> TxScheduler -> Flow -> link
//   up     NetworkReceiver: link -> admission -> session -> flow -> Messenger
//
// This is the transport of last resort. open() always succeeds, but this means only that a session has begun.
// Whether the peer exists becomes known when the peer answers or the session ends. Polling the network costs
// a system call or a cache miss on a ring. Therefore an endpoint that has peers on its node rarely polls a
// silent network.
#pragma once

#include <cstdint>
#include <string>

#include "network/network_parts.h"
#include "network/network_receiver.h"
#include "network/session_table.h"
#include "network/tx_scheduler.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::network {

/// Returns access to the registered memory of a peer that is on this node but that no nearer transport
/// reaches. Returns null if no access is possible now.
using ReachMemory = std::function<std::unique_ptr<carrier::MemoryAccess>(const SocketAddress&)>;

/// Tells the process probe which hosts are in the address vector (link/process_probe.h). The probe also
/// answers other hosts that ask about this process. It reserves capacity to answer the hosts in the address
/// vector, so that other hosts cannot use up this capacity.
class MemberHosts {
 public:
  /// `probe` may be null.
  explicit MemberHosts(link::ProcessProbe* probe) : probe_(probe) {}

  /// Updates the probe if the address vector has changed.
  void review(const transport::AddressTable& addresses);

 private:
  link::ProcessProbe* probe_;
  std::uint64_t generation_ = ~std::uint64_t{0};  ///< generation of the address table at the last review
};

/// The network resources of the endpoint. All of them must outlive the transport.
struct NetworkResources {
  link::Link& link;
  std::vector<multipath::Rail>& rails;
  link::ProcessProbe* probe;
  const std::shared_ptr<const EndpointRoster>& roster;
  bool datagrams;
  ReachMemory reach_memory;  ///< if empty, the peers themselves serve all remote accesses
};

class NetworkTransport final : public transport::Transport, private transport::WakeSource {
 public:
  NetworkTransport(const transport::TransportContext& context, const NetworkResources& resources);
  ~NetworkTransport() override;

  /// Returns the datagram endpoint, which sends and receives without sessions. The result is empty for other
  /// types of endpoints.
  std::optional<DatagramEndpoint>& datagrams() { return receiver_.datagrams(); }

  /// Called when the endpoint's bindings have changed.
  void attach() { receiver_.short_messages().attach(); }
  /// Sends the message by the frame lane of the peer (reliability/frame_lane.h). Returns false, and does
  /// nothing, if the message has to take the general path.
  bool send_short(Peer& peer, const protocol::ShortSend& message);
  /// The same for a remote write.
  bool write_short(Peer& peer, const protocol::WriteOp& op);
  /// Returns true if the next turns may begin with receive_short().
  bool takes_short_turns() const {
    return parts_.settings.frame_lane && !tx_.flows().empty() && !receiver_.holding() &&
           parts_.link->integrity() == wire::Integrity::checksum;
  }
  /// Receives frames and processes those that can take the frame lane. Returns true if nothing else needs a
  /// turn now. Otherwise the caller takes a full turn, in which receive() goes on.
  bool receive_short(protocol::DirectSuccesses& direct);

  const char* name() const override { return parts_.link->name(); }
  /// Returns "verbs" while a path between queue pairs works.
  const char* name_for(const Peer& peer) const override;
  transport::OpenResult open(Peer& peer, std::string& reason) override;
  bool look_for(Peer& peer) override;
  bool asking(const Peer& peer) const override;
  void close(Peer& peer) override;
  void after_close(Peer& peer) override;
  void say_goodbye(Peer& peer) override;
  bool holds(const Peer& peer) const override;
  bool has_met(const Peer& peer) const override;
  bool vouches_for(Peer& peer) override;
  bool vouches_for_name(const SocketAddress& name) override;
  bool succeeds(Peer& peer, std::uint64_t epoch) override;
  std::string loss_detail(const Peer& peer, Status status) const override;
  const char* advice(Status status) const override;
  void report(const Peer& peer, transport::PeerStats& stats) const override;
  std::unique_ptr<carrier::MemoryAccess> reach_memory(Peer& peer) override;

  bool receive(transport::Turn& turn) override;
  void transmit(transport::Turn& turn) override;
  void before_pump() override;
  void posted(Peer& peer, bool more) override { tx_.posted(parts_.of(peer), more); }
  void mark(Peer& peer) override { tx_.mark(parts_.of(peer)); }
  void flush() override;
  bool holding() const override { return receiver_.holding(); }
  void receive_held(std::uint32_t turn) override;
  bool may_be_skipped() const override;
  std::uint64_t ticks_between_looks() const override {
    return tx_.flows().empty() ? kTicksPerLookAlone : kTicksPerLook;
  }
  bool quiescent(transport::Towards towards) const override { return tx_.quiescent(towards); }
  void begin_close() override { tx_.disregard_turns(); }

  bool prepare_sleep() override;
  Time deadline() const override;

 private:
  RemotePeer* by_lane(Peer& peer, std::size_t size);
  void leave(RemotePeer& remote);
  void on_ready(bool trouble) override;
  void on_move(std::uint8_t link, const SocketAddress& address);
  bool due(transport::Turn& turn) const;
  bool is_member_by_alias(const RemotePeer& remote) const;

  NetworkParts parts_;
  std::vector<multipath::Rail>& rails_;
  Clock& clock_;
  PeerTable& peers_;
  protocol::Messenger& messenger_;
  transport::PackingPolicy& packing_;
  transport::Waiter& waiter_;
  transport::PeerReach& reach_;
  TxScheduler tx_;
  SessionTable sessions_;
  NetworkReceiver receiver_;
  MemberHosts hosts_;
  const ReachMemory reach_memory_;
  std::uint64_t looked_at_ = 0;   ///< when the network was last polled, in ticks
  std::size_t arrivals_ = 0;      ///< frames of the current turn
  std::uint64_t turned_at_ = 0;   ///< when a full turn last checked the timers, in ticks
  bool logged_loopback_ = false;  ///< the log already names a peer with a loopback address
};

}  // namespace cluster::network
