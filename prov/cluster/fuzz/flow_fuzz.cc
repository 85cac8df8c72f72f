// A flow whose peer is hostile: it gets frames that are admitted and have any content, while it sends, waits
// and retransmits. Tokens are reported at most once, and only those that were posted.
#include <set>

#include "fuzz/hostile_input.h"
#include "reliability/flow.h"
#include "reliability/frame_body.h"
#include "support/fake_network.h"

namespace {

using namespace cluster;

constexpr std::byte kIpA[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
constexpr std::byte kIpB[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{2}};
constexpr std::uint32_t kSession = 1000;
constexpr std::uint64_t kToken = 5000;
constexpr std::uint32_t kPeerSession = 2000;

template <typename Block>
void append(std::vector<std::byte>& frame, const Block& block, std::size_t size = sizeof(Block)) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&block);
  frame.insert(frame.end(), bytes, bytes + size);
}

class FlowHarness {
 public:
  explicit FlowHarness(FuzzedDataProvider& input)
      : input_(input),
        name_(SocketAddress::v4(kIpA, 1)),
        peer_(SocketAddress::v4(kIpB, 2)),
        link_(network_, name_),
        flow_({.window = 16}, {name_, 1, kSession, kToken}, {peer_, {}, false}, world_.log, world_.counters,
              bodies_, burst_, world_.random) {}

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 6)) {
      case 6: post_run(); break;
      case 0: post(); break;
      case 1:
        world_.clock.advance(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 3'000'000)));
        break;
      case 2: network_.conditions.burst = input_.ConsumeIntegralInRange<std::size_t>(0, 8); break;
      default: take(make_frame()); break;
    }
    const Time now = world_.clock.now();
    if (flow_.deadline() <= now) flow_.on_timer(now);
    if (flow_.status() == Status::ok && flow_.liveness().keep_alive_due(now)) {
      flow_.keep_alive(now, {peer_, {}, false});
    }
    flow_.transmit(now, link_);
    check_tokens();
  }

 private:
  void post() {
    wire::Segment segment;
    const std::size_t most = flow_.queue().payload_max(segment);
    segment.length = static_cast<std::uint32_t>(input_.ConsumeIntegralInRange<std::size_t>(0, most));
    const ConstBytes slice(payload_.data(), segment.length);
    const bool refer = input_.ConsumeBool();
    if (flow_.queue().post(segment, {{&slice, 1}, 0, slice.size()},
                           refer ? carrier::PayloadMode::reference : carrier::PayloadMode::copy,
                           posted_ + 1)) {
      ++posted_;
    }
  }

  void post_run() {
    wire::Segment segment;
    segment.kind = input_.ConsumeBool() ? wire::SegmentKind::bulk : wire::SegmentKind::eager_next;
    const ConstBytes slice(payload_.data(), input_.ConsumeIntegralInRange<std::size_t>(1, payload_.size()));
    if (flow_.queue().post_run(segment, {{&slice, 1}, 0, slice.size()}, posted_ + 1) != 0) ++posted_;
  }

  std::vector<std::byte> make_frame() {
    wire::FrameHeader header{};
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.kind = input_.ConsumeIntegralInRange<std::uint8_t>(1, 5);
    header.flags = input_.ConsumeIntegralInRange<std::uint8_t>(0, wire::frame_flag::kAll);
    header.ack_delay = input_.ConsumeIntegral<std::uint16_t>();
    header.session = input_.PickValueInArray({0u, kSession, kSession, kSession, 77u});
    header.sequence = fuzz::near(input_, expected_);
    header.transmission = fuzz::near(input_, expected_ - kPeerSession + 1);
    const std::uint32_t ack =
        fuzz::near<std::uint32_t>(input_, kSession + static_cast<std::uint32_t>(posted_ / 2));
    header.ack = ack;
    header.largest_acked = fuzz::near<std::uint32_t>(input_, static_cast<std::uint32_t>(posted_));
    std::vector<std::byte> frame;
    append(frame, header);
    if ((header.flags & wire::frame_flag::kOpening) != 0) append(frame, opening());
    if ((header.flags & wire::frame_flag::kAckBlock) != 0) append_ranges(frame, ack);
    if ((header.flags & wire::frame_flag::kSequenced) != 0) append_segments(frame);
    const wire::Le16 length = static_cast<std::uint16_t>(frame.size());
    std::memcpy(frame.data() + 4, &length, sizeof length);
    fuzz::set_checksum(frame);
    return frame;
  }
  wire::OpeningBlock opening() {
    wire::Opening opening;
    opening.session = input_.PickValueInArray({kPeerSession, kPeerSession, 7u});
    opening.epoch = input_.ConsumeIntegralInRange<std::uint64_t>(0, 3);
    opening.name = peer_;
    opening.frame_max = input_.PickValueInArray<std::uint16_t>({512, 1472, 65535});
    opening.window = input_.PickValueInArray<std::uint16_t>({1, 8, 512, 65535});
    opening.token = input_.ConsumeIntegralInRange<std::uint64_t>(0, 2);
    opening.echo = input_.PickValueInArray<std::uint64_t>({kToken, kToken, 0, kToken + 1});
    wire::OpeningBlock block;
    wire::encode(opening, block);
    return block;
  }
  void append_ranges(std::vector<std::byte>& frame, std::uint32_t ack) {
    wire::Ack block;
    block.spurious = fuzz::near<std::uint32_t>(input_, 0);
    block.count = input_.ConsumeIntegralInRange<std::size_t>(0, wire::kAckRangesMax);
    std::uint32_t at = ack;
    for (std::size_t i = 0; i < block.count; ++i) {
      block.ranges[i].first = {at += input_.ConsumeIntegralInRange<std::uint32_t>(0, 4)};
      block.ranges[i].end = {at += input_.ConsumeIntegralInRange<std::uint32_t>(0, 4)};
    }
    std::array<std::byte, wire::ack_block_size(wire::kAckRangesMax)> bytes;
    const std::size_t size = wire::encode(block, bytes.data());
    frame.insert(frame.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  }
  void append_segments(std::vector<std::byte>& frame) {
    for (int left = input_.ConsumeIntegralInRange<int>(1, 3); left > 0; --left) {
      const wire::Segment segment = fuzz::segment(input_);
      std::array<std::byte, wire::kSegmentHeaderMax + 64> bytes;
      const std::size_t size = wire::encode(segment, bytes.data());
      frame.insert(frame.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    }
  }

  void take(const std::vector<std::byte>& frame) {
    wire::FrameView view;
    if (wire::admit(frame, view) != wire::Refusal::none) return;
    const link::Path from{peer_, {}, true};
    if (view.session == 0 && view.has_opening) return flow_.answer_opening(view, {peer_, {}, false}, link_);
    const auto count = input_.ConsumeIntegralInRange<std::uint32_t>(1, 6);
    const bool run = count > 1 && view.kind == wire::FrameKind::flow && view.sequenced() && !view.has_opening;
    const bool together = run && flow_.receiver().takes_run(view, count);
    const auto verdict = flow_.receive(world_.clock.now(), view, from, kNever, together ? count : 1);
    if (verdict != reliability::ReceiveResult::accepted) return;
    expected_ += together ? count : 1;
    ConstBytes segments;
    std::size_t sum = 0;
    while (flow_.receiver().next(segments)) {
      for (const std::byte byte : segments) sum += std::to_integer<std::size_t>(byte);
    }
    sink_ = sink_ + sum;
  }

  void check_tokens() {
    std::vector<carrier::Token> tokens;
    flow_.take_acked(tokens);
    for (const carrier::Token token : tokens) {
      if (token == 0 || token > posted_ || !reported_.insert(token).second) __builtin_trap();
    }
  }

  FuzzedDataProvider& input_;
  test::FakeEnvironment world_;
  test::FakeNetwork network_{world_.clock, 1};
  SocketAddress name_;
  SocketAddress peer_;
  test::FakeLink link_;
  reliability::BodyPool bodies_{reliability::FlowSettings{}.frame_max};
  reliability::Burst burst_;
  reliability::Flow flow_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(65536);
  std::uint64_t posted_ = 0;
  std::uint32_t expected_ = kPeerSession;
  volatile std::size_t sink_ = 0;  ///< every delivered byte is read
  std::set<carrier::Token> reported_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  FlowHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
