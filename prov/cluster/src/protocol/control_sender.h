// Sends control segments: pulls, reads, answers and credit. They do not wait for operations that are queued,
// and this class posts them at once. If the carrier has no space, the channel keeps them, and
// Messenger::pump() posts them before anything else.
//
// The class also keeps two lists of channels for the engine. A busy channel still has segments that
// Messenger::pump() has to post. A channel is pending if a segment was posted to it outside pump() and
// outside the application's operations. The engine must still transmit the segments of a pending channel.
//
// Callers send segments in the middle of other work, which often serves another peer than the segment.
// Therefore this class throws nothing, not even if memory runs out in the function that pump_busy() calls. If
// there is no memory for a segment, its receiver is lost (base/end_of_memory.h).
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
  /// Tells the peer that its request `id` is finished: this side has all wanted bytes, or has executed the
  /// operation.
  void send_done(Channel& channel, std::uint32_t id);
  /// Tells the peer that its request `id` has failed, or that this side refuses it. The segment always names
  /// Status::access as the cause.
  void send_failed(Channel& channel, std::uint32_t id);
  /// Lets the peer use the credit `charge` again. The message that caused the charge must have left the
  /// store, or must never have been stored. Advertises credit in steps, so that one credit segment serves
  /// many messages.
  void release(Channel& channel, std::uint64_t charge);
  void advertise_credit(Channel& channel) {
    send(channel, {.kind = wire::SegmentKind::credit, .total = channel.credit.granted});
  }
  /// Posts the kept segments. Returns false if the carrier has no space for the next of them.
  static bool flush(Channel& channel);

  void mark_busy(Channel& channel) {
    if (!channel.tx.busy) channel.tx.busy = listed(busy_, channel);
  }
  /// Adds the channel to the list of pending channels. Must be called for each segment that is posted outside
  /// pump() and outside the application's operations.
  void mark_pending(Channel& channel) {
    if (channel.tx.control_pending || channel.carrier->traits().acknowledges_on_post) return;
    channel.tx.control_pending = listed(pending_, channel);
  }

  bool busy() const { return !busy_.empty(); }
  /// Like busy(), but considers only channels for which counts(channel) is true.
  template <typename Counts>
  bool busy(Counts&& counts) const {
    return std::any_of(busy_.begin(), busy_.end(), [&](const Channel* channel) { return counts(*channel); });
  }
  bool pending() const { return !pending_.empty(); }
  /// Calls pump(channel) for each busy channel, and for channels that become busy meanwhile. If pump(channel)
  /// returns true, the channel is no longer busy.
  template <typename Pump>
  void pump_busy(Pump&& pump) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < busy_.size(); ++i) {
      Channel* channel = busy_[i];
      bool over = true;  // stays true if the attempt fails: the peer is lost, so nothing is left to post
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
  /// Adds the channel to the list. If there is no memory, the peer is lost, and the function returns false.
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
