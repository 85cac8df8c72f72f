// An endpoint's way to itself: a queue in memory, since a flow or a ring cannot have one endpoint at both ends. It reaches the
// peers that have this endpoint's name, or another address of its interfaces.
#pragma once

#include <string>
#include <vector>

#include "multipath/address_pairing.h"
#include "self/self_carrier.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::self {

using transport::Peer;

class SelfTransport final : public transport::Transport {
 public:
  /// `rails`: this endpoint has their addresses as well.
  SelfTransport(const transport::TransportContext& context, const std::vector<multipath::Rail>& rails)
      : context_(context), rails_(rails) {}

  const char* name() const override { return "self"; }
  bool reaches_others() const override { return false; }
  transport::OpenResult open(Peer& peer, std::string& reason) override;
  /// This endpoint is lost to itself only for want of memory.
  bool look_for(Peer& peer) override {
    std::string reason;
    return open(peer, reason) == transport::OpenResult::reached;
  }
  void close(Peer& peer) override {
    if (holds(peer)) carrier_.clear();
  }
  bool holds(const Peer& peer) const override { return peer.transport() == this || &peer == self_; }
  bool vouches_for(Peer& peer) override { return holds(peer); }

  bool receive(transport::Turn&) override { return carrier_.pending() && receive_some(); }
  bool holding() const override { return held_; }
  void receive_held(std::uint32_t) override {
    held_ = false;
    receive_some();
  }
  void transmit(transport::Turn&) override {
    if (carrier_.ended()) [[unlikely]]
      fail();
  }
  bool silent() const override { return !wants_turn(); }
  bool wants_turn() const override { return carrier_.pending() || carrier_.ended(); }

 private:
  /// Segments taken out in one turn.
  static constexpr std::size_t kBurst = 64;

  bool receive_some();
  void fail();
  bool may_deliver(const wire::Segment& segment);

  const transport::TransportContext& context_;
  const std::vector<multipath::Rail>& rails_;
  SelfCarrier carrier_;
  Peer* self_ = nullptr;  ///< the peer of this endpoint's name; null until something is sent to it
  bool held_ = false;
};

}  // namespace cluster::self
