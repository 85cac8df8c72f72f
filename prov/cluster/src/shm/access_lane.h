// The access lane writes or reads a few bytes of a peer's memory in one function. It serves peers of this
// node, and regions that this process has mapped (shm/peer_regions.h). An access takes effect, and is
// complete, before access() returns. All other accesses take the general path (protocol/remote_access.h),
// which does not depend on the lane. The lane takes an access only if the general path would execute it at
// once, too.
//
// The access lane is open while the fast lane of the peer is open (shm/fast_lane.h) and a window shows the
// last mapped region of the peer (shm/region_window.h). If the fast lane is open, a ring reaches the peer, no
// operation waits in the peer's queue, and no read is in progress. For each access, the lane checks four more
// conditions:
//   - The window shows the range, and the region allows the access.
//   - No operation with a request is in progress. (A fence or an ordering rule could make the access wait for
//     such an operation.)
//   - No posted write is pending.
//   - If accesses must not overtake messages, the peer has taken all messages.
// The code in api/ does not use the lane if the flags of an access request a fence. A write with remote
// completion data needs the peer's library, so it does not take the lane either.
//
// An attempt that fails costs some 70 instructions. So after kRefusalsMax failures in a row, callers stop
// trying the lane (promising()). They try the lane again once the general path has accessed a region that the
// window shows (review()).
//
// access() and review() run under the engine lock, and leave no work for the engine.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/bytes.h"
#include "protocol/messenger.h"
#include "shm/local_memory.h"
#include "shm/outbox.h"
#include "transport/peer.h"

namespace cluster::shm {

using protocol::ShortRead;
using protocol::ShortWrite;

static_assert(ShortWrite::kBytesMax <= kPieceBytes && ShortRead::kBytesMax <= kPieceBytes,
              "one use is enough");

class AccessLane : protocol::MessengerParts {
 public:
  explicit AccessLane(protocol::Messenger& messenger) : MessengerParts(messenger.parts()) {}

  /// Returns false if an attempt is not worth its cost. May be called without the engine lock.
  bool promising() const { return refusals_.load(std::memory_order_relaxed) < kRefusalsMax; }
  /// Called after an access on the general path to the peer's region with this key.
  void review(const transport::Peer& peer, std::uint64_t key) {
    const LocalMemory* const memory = memory_of(peer);
    if (memory != nullptr && memory->window().shows(key)) refusals_.store(0, std::memory_order_relaxed);
  }

  /// Performs the access. If the lane cannot take it, does nothing and returns false.
  bool access(transport::Peer& peer, const ShortWrite& op) {
    const RegionWindow* const window = open_window(peer, context_.bindings.ordering.write_after_send);
    const auto store = [&](std::byte* there) { copy_short(there, op.source, op.length); };
    if (window == nullptr || !window->access(op.key, op.address, op.length, RegionEntry::kWritable,
                                             RegionEntry::kWritesServed, store)) [[unlikely]] {
      return refuse();
    }
    context_.counters.bytes_sent += op.length;
    ++context_.counters.rma_alone;
    refusals_.store(0, std::memory_order_relaxed);
    reporter_.rma_succeeded(protocol::Completion::Kind::write, op.context, op.report);
    return true;
  }
  bool access(transport::Peer& peer, const ShortRead& op) {
    const RegionWindow* const window = open_window(peer, context_.bindings.ordering.read_after_send);
    const auto load = [&](const std::byte* there) { copy_short(op.target, there, op.length); };
    if (window == nullptr || !window->access(op.key, op.address, op.length, RegionEntry::kReadable,
                                             RegionEntry::kReadsServed, load)) [[unlikely]] {
      return refuse();
    }
    ++context_.counters.rma_alone;
    refusals_.store(0, std::memory_order_relaxed);
    reporter_.rma_succeeded(protocol::Completion::Kind::read, op.context, op.report);
    return true;
  }

 private:
  static constexpr std::uint32_t kRefusalsMax = 16;

  [[gnu::noinline]] bool refuse() {
    refusals_.store(refusals_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return false;
  }
  /// The fast lane of the peer must be open. In this case the shared-memory transport reaches the peer, so
  /// `access` is null or a LocalMemory.
  static const LocalMemory* memory_of(const transport::Peer& peer) {
    return static_cast<const LocalMemory*>(peer.channel.rma.reached.access.get());
  }
  /// Returns null if the lane is closed, or if an access must wait for an earlier operation.
  [[gnu::always_inline]] static const RegionWindow* open_window(const transport::Peer& peer,
                                                                bool after_sends) {
    if (peer.lane == nullptr) [[unlikely]]
      return nullptr;
    const protocol::Channel& channel = peer.channel;
    const LocalMemory* const memory = memory_of(peer);
    if (memory == nullptr || !channel.outgoing.empty() || channel.rma.puts_pending != 0) return nullptr;
    if (after_sends && !static_cast<const Outbox*>(peer.lane)->drained()) return nullptr;
    return &memory->window();
  }

  std::atomic<std::uint32_t> refusals_{0};  ///< attempts that have failed since the last success or review
};

}  // namespace cluster::shm
