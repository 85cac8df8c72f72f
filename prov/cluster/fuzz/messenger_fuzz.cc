// A messenger whose peer is hostile: segments of every kind with any fields arrive while the application
// sends, receives, reads, writes, operates atomically and cancels. Buffers and regions are exactly as long as
// they were said to be; every operation ends at most once, a buffer for many messages when it is released.
#include <deque>
#include <map>

#include "fuzz/hostile_input.h"
#include "protocol/atomic_arithmetic.h"
#include "protocol/messenger.h"
#include "protocol/region_table.h"
#include "support/queue_carrier.h"

namespace {

using namespace cluster;
using namespace cluster::protocol;

struct FixedHandle final : AddressHandles {
  std::uint64_t handle_of(const Channel&) override { return 0; }
  bool is_member(const Channel&) override { return true; }
};

class MessengerHarness {
 public:
  explicit MessengerHarness(FuzzedDataProvider& input) : input_(input) {
    regions_.add(1, {region_.data(), 0, region_.size(), true, true, nullptr, nullptr});
    regions_.add(2, {region_.data(), 0, region_.size(), true, false, nullptr, nullptr});
    EndpointBindings bindings;
    bindings.tx_queue = bindings.rx_queue = &completions_;
    bindings.regions = &regions_;
    bindings.want_source = true;
    messenger_.attach(bindings);
    connect();
    carrier_.set_ring(input_.ConsumeBool());
  }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 15)) {
      case 0: send(); break;
      case 1: receive(); break;
      case 2: access(); break;
      case 3: deliver(); break;
      case 4: messenger_.matcher().cancel(pick_context()); break;
      case 5: peek(); break;
      case 6: carrier_.capacity = input_.ConsumeIntegralInRange<std::size_t>(0, 8); break;
      case 7: fail(); break;
      case 8: operate(); break;
      case 9: receive_many(); break;
      default: arrive(); break;
    }
    messenger_.pump();
    messenger_.control().take_pending([](Channel&) {});
    completions_.drain(
        ~std::size_t{0}, [](const Completion&) { return true; }, [this](const Completion& c) { ended(c); });
  }

 private:
  void connect() {
    channel_.carrier = &carrier_;
    channel_.eager_max = 3000;
  }
  void* begin() {
    auto* context = reinterpret_cast<void*>(++contexts_);
    alive_[context] = true;
    return context;
  }
  void* pick_context() {
    return reinterpret_cast<void*>(input_.ConsumeIntegralInRange<std::uint64_t>(0, contexts_));
  }
  void ended(const Completion& completion) {
    if (completion.kind == Completion::Kind::remote_write || completion.status == Status::no_message) return;
    const auto found = alive_.find(completion.context);
    if (found == alive_.end()) __builtin_trap();
    if (!found->second) __builtin_trap();
    found->second = peeks_.contains(completion.context) ||
                    (many_.contains(completion.context) && !completion.releases_buffer);
  }
  std::size_t size() { return input_.PickValueInArray<std::size_t>({0, 1, 100, 1001, 4000, 300'000}); }
  Bytes buffer(std::size_t length) {
    buffers_.emplace_back(length);
    return buffers_.back();
  }

  void send() {
    const ConstBytes slice = buffer(size());
    SendOp order{.slices = {&slice, 1}, .length = slice.size(), .context = begin()};
    order.tagged = input_.ConsumeBool();
    order.tag = input_.ConsumeIntegralInRange<std::uint64_t>(0, 3);
    order.completion_level = input_.PickValueInArray(
        {CompletionLevel::inject, CompletionLevel::transmit, CompletionLevel::delivery});
    if (messenger_.send(channel_, order) != Status::ok) alive_.erase(order.context);
  }
  void receive() {
    const Bytes slice = buffer(size());
    RecvOp order{.slices = {&slice, 1}, .context = begin()};
    order.tagged = input_.ConsumeBool();
    order.tag = input_.ConsumeIntegralInRange<std::uint64_t>(0, 3);
    order.ignore = input_.ConsumeBool() ? ~std::uint64_t{0} : 0;
    messenger_.matcher().receive(input_.ConsumeBool() ? &channel_ : nullptr, order);
  }
  void peek() {
    RecvOp order{.slices = {}, .context = begin()};
    peeks_[order.context] = true;
    order.tagged = input_.ConsumeBool();
    order.ignore = ~std::uint64_t{0};
    order.peek = input_.PickValueInArray({Peek::look, Peek::claim, Peek::discard});
    messenger_.matcher().receive(nullptr, order);
  }
  void access() {
    const Bytes bytes = buffer(size() + 1);
    const RmaIov range{0, 1, bytes.size()};
    if (input_.ConsumeBool()) {
      const ConstBytes slice = bytes;
      WriteOp order;
      fill(order, range);
      order.slices = {&slice, 1};
      if (messenger_.rma().write(channel_, order) != Status::ok) alive_.erase(order.context);
    } else {
      ReadOp order;
      fill(order, range);
      order.slices = {&bytes, 1};
      if (messenger_.rma().read(channel_, order) != Status::ok) alive_.erase(order.context);
    }
  }
  /// An atomic operation on whole elements of the peer's memory.
  void operate() {
    AtomicRmaOp order;
    order.code.op = static_cast<wire::AtomicOp>(input_.ConsumeIntegralInRange<int>(0, wire::kAtomicOps - 1));
    order.code.type = input_.PickValueInArray({wire::AtomicType::uint8, wire::AtomicType::int32,
                                               wire::AtomicType::float64, wire::AtomicType::uint128});
    order.code.fetch = order.code.op == wire::AtomicOp::read || order.code.compares() || input_.ConsumeBool();
    if (!supported(order.code.op, order.code.type)) return;
    const std::size_t length = size_of(order.code.type) * input_.PickValueInArray<std::size_t>({1, 3, 100});
    const RmaIov range{0, 1, length};
    const ConstBytes operands = buffer(length);
    const ConstBytes comparands = buffer(length);
    const Bytes results = buffer(length);
    fill(order, range);
    if (order.code.operands() > 0) order.slices = {&operands, 1};
    if (order.code.compares()) order.compares = {&comparands, 1};
    if (order.code.fetch) order.results = {&results, 1};
    if (messenger_.atomic(channel_, order) != Status::ok) alive_.erase(order.context);
  }
  void receive_many() {
    const Bytes slice = buffer(input_.PickValueInArray<std::size_t>({100, 4000, 70'000}));
    RecvOp order{.slices = {&slice, 1}, .context = begin()};
    order.ignore = ~std::uint64_t{0};
    order.min_multi_recv = input_.PickValueInArray<std::size_t>({1, 50, 2000});
    many_[order.context] = true;
    if (messenger_.matcher().receive(input_.ConsumeBool() ? &channel_ : nullptr, order) != Status::ok) {
      alive_.erase(order.context);
    }
  }
  void fill(RmaOp& order, const RmaIov& range) {
    order.remote = {&range, 1};
    order.length = range.length;
    order.context = begin();
    order.fence = input_.ConsumeBool();
  }
  void deliver() {
    if (carrier_.items.empty()) return;
    const Token token = carrier_.items.front().token;
    carrier_.items.pop_front();
    if (token != 0) messenger_.acked({&token, 1});
  }
  void fail() {
    if (input_.ConsumeProbability<float>() < 0.8f) return;
    carrier_.items.clear();
    messenger_.fail(channel_, Status::reset, input_.ConsumeBool());
    connect();
  }
  void arrive() {
    wire::Segment segment;
    if (!fuzz::admit_segment(fuzz::segment(input_), segment)) return;
    const std::vector<std::byte> payload(segment.length);
    messenger_.arrive(channel_, segment, payload);
  }

  FuzzedDataProvider& input_;
  std::vector<std::byte> region_ = std::vector<std::byte>(70'000);
  std::deque<std::vector<std::byte>> buffers_;
  RegionTable regions_;
  Counters counters_;
  FixedHandle handles_;
  CompletionQueue completions_;
  test::QueueCarrier carrier_;
  Channel channel_;
  Messenger messenger_{{.tx_requests_max = 64, .eager_credit = kInitialCredit, .pull_window = 512 * 1024},
                       counters_,
                       handles_};
  std::map<void*, bool> alive_;
  std::map<void*, bool> peeks_;
  std::map<void*, bool> many_;  ///< buffers for many messages
  std::uint64_t contexts_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputMax = 4096;  // every send keeps its buffer
  FuzzedDataProvider input(data, size < kInputMax ? size : kInputMax);
  MessengerHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
