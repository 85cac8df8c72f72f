// The transport by which an endpoint reaches itself: a queue in memory, because a flow or a ring cannot have
// one endpoint at both ends. It reaches the peers that have the name or another rail address of this
// endpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ring_queue.h"
#include "carrier/carrier.h"
#include "multipath/address_pairing.h"
#include "transport/arrival.h"
#include "transport/transport.h"
#include "transport/transport_context.h"

namespace cluster::self {

using transport::Peer;

/// The queue. It is bounded like a ring: a segment that does not fit is refused until the queue has been
/// read.
class SelfCarrier final : public carrier::Carrier {
 public:
  SelfCarrier() : Carrier({.acknowledges_on_post = true, .on_this_node = true}) {}

  std::size_t payload_max(const wire::Segment&) const override { return kPayloadMax; }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;

  struct Entry {
    wire::Segment segment;
    std::unique_ptr<std::byte[]> payload;
  };
  /// Takes out the oldest segment. The queue must not be empty.
  Entry pop();
  /// Undoes pop(). Nothing may have been posted since.
  void put_back(Entry&& entry);
  bool pending() const { return !queue_.empty(); }

 private:
  static constexpr std::size_t kPayloadMax = 64 * 1024;
  static constexpr std::size_t kSegmentsMax = 1024;
  static constexpr std::size_t kBytesMax = 1024 * 1024;

  RingQueue<Entry> queue_;
  std::size_t bytes_ = 0;
};

class SelfTransport final : public transport::Transport {
 public:
  /// `rails`: their addresses belong to this endpoint, too.
  SelfTransport(const transport::TransportContext& context, const std::vector<multipath::Rail>& rails)
      : context_(context), rails_(rails), arrivals_(context.messenger, context.peers, context.admission) {}

  const char* name() const override { return "self"; }
  bool reaches_others() const override { return false; }
  transport::OpenResult open(Peer& peer, std::string& reason) override;
  bool look_for(Peer&) override { return false; }
  void close(Peer&) override {}
  bool holds(const Peer& peer) const override { return peer.transport() == this || &peer == self_; }
  bool vouches_for(Peer& peer) override { return holds(peer); }

  bool receive(transport::Turn&) override { return carrier_.pending() && receive_some(); }
  bool holding() const override { return held_; }
  void receive_held(std::uint32_t) override { receive_some(); }
  bool silent() const override { return !carrier_.pending(); }
  bool wants_turn() const override { return carrier_.pending(); }

 private:
  /// Most segments that one turn takes out.
  static constexpr std::size_t kBurst = 64;

  bool receive_some();

  const transport::TransportContext& context_;
  const std::vector<multipath::Rail>& rails_;
  transport::Arrivals arrivals_;
  SelfCarrier carrier_;
  Peer* self_ = nullptr;  ///< the peer of this endpoint's name; null until something is sent to it
  bool held_ = false;
};

}  // namespace cluster::self
