// Control segments: pulls, confirmations, credit. They are outside the order of operations and are posted at
// once. If the carrier has no space, the channel keeps them and posts them before anything else.
//
// It also keeps two lists for the engine. A busy channel has segments left that Messenger::pump() posts. A
// channel with control pending got a segment outside pump() and the operations of the application: the engine
// has to transmit its flow.
//
// Callers send segments in the middle of other work, often to another peer than the one they work for. So
// this class throws nothing. If there is no memory for a segment, its peer is lost (base/end_of_memory.h).
// The same holds for pump().
#pragma once

#include <vector>

#include "base/end_of_memory.h"
#include "protocol/channel.h"
#include "protocol/context.h"

namespace cluster::protocol {

class ControlSender {
 public:
  explicit ControlSender(const Context& context) : context_(context) {}

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
    if (!channel.tx.busy) channel.tx.busy = listed(busy_, channel);
  }
  /// A segment was posted outside pump() and outside the application's operations.
  void mark_pending(Channel& channel) {
    if (channel.tx.control_pending || channel.carrier->traits().acknowledges_on_post) return;
    channel.tx.control_pending = listed(pending_, channel);
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
      bool over = true;  // as it is for a peer that is lost
      attempt(*channel, [&] { over = pump(*channel); });
      channel->tx.busy = !over;
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
  /// False: the peer is lost.
  bool listed(std::vector<Channel*>& list, Channel& channel) {
    return attempt(channel, [&] { list.push_back(&channel); });
  }
  template <typename Work>
  bool attempt(const Channel& channel, Work&& work) {
    if (enough_memory_for(work)) [[likely]]
      return true;
    context_.handles.lose(channel);
    return false;
  }

  const Context& context_;
  std::vector<Channel*> busy_;
  std::vector<Channel*> pending_;
};

}  // namespace cluster::protocol
