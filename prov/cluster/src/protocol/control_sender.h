// Control segments: pulls, confirmations, credit. They are outside the order of operations and are posted at
// once. If the carrier has no space, the channel keeps them and posts them before anything else.
//
// The sender also keeps two lists for the engine. A busy channel has segments left for Messenger::pump(). A
// channel with control pending has got a segment outside pump() and outside the application's operations, so
// the engine has to transmit its flow.
#pragma once

#include <vector>

#include "protocol/channel.h"
#include "protocol/context.h"

namespace cluster::protocol {

class ControlSender {
 public:
  explicit ControlSender(const Context& context) : context_(context) {
    busy_.reserve(kChannelsFirst);
    pending_.reserve(kChannelsFirst);
  }

  void send(Channel& channel, const wire::Segment& segment);
  /// The peer's request is finished: all wanted bytes have arrived, or the operation has been executed.
  void send_done(Channel& channel, std::uint32_t id);
  /// The peer's request accesses memory that it must not access.
  void send_failed(Channel& channel, std::uint32_t id);
  /// A message that the peer charged has left the store, or never entered it, so the peer may use its charge
  /// again. Credit is advertised in steps: one credit segment serves many messages.
  void release(Channel& channel, std::uint64_t charge);
  void advertise_credit(Channel& channel) {
    send(channel, {.kind = wire::SegmentKind::credit, .total = channel.credit.granted});
  }
  /// Posts the kept segments. Returns false if the carrier lacks space for all of them.
  static bool flush(Channel& channel);

  void mark_busy(Channel& channel) {
    if (channel.tx.busy) return;
    busy_.push_back(&channel);
    channel.tx.busy = true;
  }
  /// A segment was posted outside pump() and outside the application's operations.
  void mark_pending(Channel& channel) {
    if (channel.tx.control_pending || channel.carrier->traits().acknowledges_on_post) return;
    pending_.push_back(&channel);
    channel.tx.control_pending = true;
  }

  bool busy() const { return !busy_.empty(); }
  /// Like busy(), for channels for which counts() is true.
  template <typename Counts>
  bool busy(Counts&& counts) const {
    return std::any_of(busy_.begin(), busy_.end(), [&](const Channel* channel) { return counts(*channel); });
  }
  bool pending() const { return !pending_.empty(); }
  /// Calls pump(channel) for each busy channel. A channel is no longer busy if the call returns true.
  /// Channels that become busy meanwhile also get their turn.
  template <typename Pump>
  void pump_busy(Pump&& pump) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < busy_.size(); ++i) {
      Channel* channel = busy_[i];
      channel->tx.busy = !pump(*channel);
      if (channel->tx.busy) busy_[kept++] = channel;
    }
    busy_.resize(kept);
  }
  template <typename Visit>
  void take_pending(Visit&& visit) {
    for (Channel* channel : pending_) {
      channel->tx.control_pending = false;
      visit(*channel);
    }
    pending_.clear();
  }

 private:
  /// Memory taken ahead: what arrives causes answers when there may be none.
  static constexpr std::size_t kChannelsFirst = 8;

  const Context& context_;
  std::vector<Channel*> busy_;
  std::vector<Channel*> pending_;
};

}  // namespace cluster::protocol
