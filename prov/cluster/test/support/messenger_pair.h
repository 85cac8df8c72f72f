// Two messengers joined by queues, for tests of every path of a message without any network: what
// one side posts is carried to the other by hand, in order or with unordered segments overtaking.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "protocol/messenger.h"
#include "support/completions.h"
#include "support/queue_carrier.h"

namespace cluster::protocol {

using test::QueueCarrier;

struct FixedHandle final : AddressHandles {
  std::uint64_t handle = 7;
  std::uint64_t handle_of(const Channel&) override { return handle; }
  bool is_member(const Channel&) override { return handle != kAddrNotAvail; }
};

struct Side {
  Counters counters;
  FixedHandle handles;
  CompletionQueue completions;
  Counter sent;
  Messenger messenger;
  Channel channel;
  QueueCarrier carrier;

  explicit Side(const MessengerSettings& settings) : messenger(settings, counters, handles) {
    EndpointBindings bindings;
    bindings.tx_queue = bindings.rx_queue = &completions;
    bindings.send_counter = &sent;
    bindings.want_source = true;
    messenger.attach(bindings);
    channel.carrier = &carrier;
    channel.eager_max = 4000;
  }

  std::vector<Completion> take() { return test::take(completions); }
};

class MessengerTest : public testing::Test {
 protected:
  MessengerSettings settings{
      .tx_requests_max = 64, .eager_credit = kInitialCredit, .pull_window = 512 * 1024};
  Side left{settings};
  Side right{settings};
  bool shuffle = false;
  std::mt19937 random{1};

  /// Carries what `from` has queued to `to`. Unordered segments may overtake if `shuffle` is set.
  void carry(Side& from, Side& to) {
    while (!from.carrier.items.empty()) {
      auto next = from.carrier.items.begin();
      if (shuffle) {
        for (auto it = next; it != from.carrier.items.end(); ++it) {
          if (!wire::ordered(it->segment.kind) && random() % 2 == 0) next = it;
        }
      }
      const QueueCarrier::Item item = std::move(*next);
      from.carrier.items.erase(next);
      to.messenger.arrive(to.channel, item.segment, item.payload);
      if (item.token != 0) from.messenger.acked({&item.token, 1});
    }
  }

  void run() {
    for (int turn = 0; turn < 10000; ++turn) {
      left.messenger.pump();
      right.messenger.pump();
      if (left.carrier.items.empty() && right.carrier.items.empty()) return;
      carry(left, right);
      carry(right, left);
    }
    FAIL() << "the two never come to rest";
  }

  /// Until `seen()`: what the right side answers then stays on its way.
  template <typename Seen>
  void run_until(Seen&& seen) {
    for (int turn = 0; turn < 10000; ++turn) {
      left.messenger.pump();
      right.messenger.pump();
      carry(left, right);
      if (seen()) return;
      carry(right, left);
    }
    FAIL() << "it never comes";
  }

  /// The one completion that there is.
  static Completion outcome(Side& side) {
    const auto taken = side.take();
    EXPECT_EQ(taken.size(), 1u);
    return taken.empty() ? Completion{} : taken[0];
  }

  static std::vector<std::byte> pattern(std::size_t size, unsigned seed = 1) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed * 7 + (i >> 8));
    return bytes;
  }

  /// A copy that outlives the operation, as the protocol demands of a sender.
  ConstBytes keep(ConstBytes bytes) {
    kept.emplace_back(bytes.begin(), bytes.end());
    return kept.back();
  }
  std::deque<std::vector<std::byte>> kept;

  Status send(Side& side, ConstBytes bytes, std::uint64_t tag, void* context = nullptr,
              CompletionLevel completion_level = CompletionLevel::transmit) {
    const ConstBytes slices[] = {keep(bytes)};
    SendOp order{.slices = slices, .length = bytes.size(), .context = context};
    order.tagged = true;
    order.tag = tag;
    order.completion_level = completion_level;
    return side.messenger.send(side.channel, order);
  }

  Status receive(Side& side, Bytes bytes, std::uint64_t tag, std::uint64_t ignore = 0,
                 void* context = nullptr, bool directed = false) {
    const Bytes slices[] = {bytes};
    RecvOp order{.slices = slices, .context = context, .tag = tag, .ignore = ignore, .tagged = true};
    return side.messenger.matcher().receive(directed ? &side.channel : nullptr, order);
  }

  /// A write of this side; `op` lacks the bytes and the ranges.
  Status write(ConstBytes bytes, std::span<const RmaIov> remote, WriteOp op = {}) {
    const ConstBytes slices[] = {bytes};
    op.slices = slices;
    op.remote = remote;
    op.length = bytes.size();
    return left.messenger.rma().write(left.channel, op);
  }

  Status read(std::span<const Bytes> slices, std::span<const RmaIov> remote) {
    ReadOp op;
    op.slices = slices;
    op.remote = remote;
    for (const Bytes& slice : slices) op.length += slice.size();
    return left.messenger.rma().read(left.channel, op);
  }

  void peek(Side& side, std::uint64_t tag, Peek kind, void* context) {
    RecvOp order{.slices = {}, .context = context, .tag = tag, .tagged = true};
    order.peek = kind;
    EXPECT_EQ(side.messenger.matcher().receive(nullptr, order), Status::ok);
  }
};

}  // namespace cluster::protocol
