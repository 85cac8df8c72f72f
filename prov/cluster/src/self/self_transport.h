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

/// The queue. It is bounded like a ring: it refuses a segment that does not fit, or finds no memory, until
/// the queue has been read.
class SelfCarrier final : public carrier::Carrier {
 public:
  SelfCarrier() : Carrier({.acknowledges_on_post = true}) {}

  std::size_t payload_max(const wire::Segment&) const override { return kPayloadMax; }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;

  struct Entry {
    wire::Segment segment;
    std::unique_ptr<std::byte[]> payload;  ///< stays where it is while more is posted
  };
  bool pending() const { return !queue_.empty(); }
  /// The oldest segment; there must be one.
  const Entry& front() const { return queue_.front(); }
  void pop_front() {
    bytes_ -= queue_.front().segment.length;
    queue_.pop_front();
  }
  void clear() {
    queue_.clear();
    bytes_ = 0;
  }

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
  /// This endpoint is lost to itself only for want of memory.
  bool look_for(Peer& peer) override {
    std::string reason;
    return open(peer, reason) == transport::OpenResult::reached;
  }
  void close(Peer& peer) override;
  bool holds(const Peer& peer) const override { return peer.transport() == this || &peer == self_; }
  bool vouches_for(Peer& peer) override { return holds(peer); }

  bool receive(transport::Turn&) override { return carrier_.pending() && receive_some(); }
  bool holding() const override { return held_; }
  void receive_held(std::uint32_t) override { receive_some(); }
  bool may_be_skipped() const override { return !carrier_.pending(); }
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
