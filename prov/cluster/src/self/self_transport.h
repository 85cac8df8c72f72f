// The transport through which an endpoint reaches itself. It is a queue in memory, because a flow or a ring
// cannot have the same endpoint at both ends. It reaches a peer if the peer's address is the name of this
// endpoint or the address of one of its rails (multipath/address_pairing.h).
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

/// The queue of the endpoint's segments to itself. It refuses a segment that would exceed a limit of the
/// queue, or for which there is no memory. After the transport has read the queue, the caller must post the
/// segment again.
class SelfCarrier final : public carrier::Carrier {
 public:
  SelfCarrier() : Carrier({.acknowledges_on_post = true}) {}

  std::size_t payload_max(const wire::Segment&) const override { return kPayloadMax; }
  bool post(const wire::Segment& segment, const Gather& payload, carrier::PayloadMode mode,
            carrier::Token token) override;

  struct Entry {
    wire::Segment segment;
    std::unique_ptr<std::byte[]> payload;  ///< the bytes do not move while more segments are posted
  };
  bool pending() const { return !queue_.empty(); }
  /// Returns the oldest segment. The queue must not be empty.
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
  /// `rails`: the rails of this endpoint. The endpoint also reaches itself at the addresses of its rails.
  SelfTransport(const transport::TransportContext& context, const std::vector<multipath::Rail>& rails)
      : context_(context), rails_(rails), arrivals_(context.messenger, context.peers, context.admission) {}

  const char* name() const override { return "self"; }
  bool reaches_others() const override { return false; }
  transport::OpenResult open(Peer& peer, std::string& reason) override;
  /// An endpoint loses itself as a peer only if memory runs out, so it is always useful to reach the peer
  /// again.
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
  /// The largest number of segments that one turn delivers.
  static constexpr std::size_t kBurst = 64;

  bool receive_some();

  const transport::TransportContext& context_;
  const std::vector<multipath::Rail>& rails_;
  transport::Arrivals arrivals_;
  SelfCarrier carrier_;
  /// The peer that has this endpoint's name; null until open() is first called for this endpoint.
  Peer* self_ = nullptr;
  bool held_ = false;
};

}  // namespace cluster::self
