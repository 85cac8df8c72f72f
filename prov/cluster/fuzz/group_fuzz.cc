// One membership in a group whose other members are hostile: segments of the group with any fields, frames of
// its streams, members that are lost, met again and never known, while this side sends messages, reads what
// arrives, and leaves. Each message of this side finishes at most once, and streams hand over what was put
// into them.
#include <array>
#include <deque>
#include <set>

#include "fuzz/hostile_input.h"
#include "group/group.h"
#include "support/fake_environment.h"
#include "support/queue_carrier.h"

namespace {

using namespace cluster;
using namespace cluster::group;

constexpr std::uint64_t kKey = 77;
constexpr std::uint32_t kStream = 5;
constexpr std::uint32_t kItsStream = 9;
constexpr std::size_t kBodyMax = 1000;

SocketAddress name_of(std::uint8_t number) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{number}};
  return SocketAddress::v4(ip, 7000);
}

/// Takes multicast frames, and reads each byte of them.
class Sink final : public link::Link {
 public:
  const char* name() const override { return "sink"; }
  std::size_t frame_max() const override { return 1472; }
  std::size_t send_burst(std::span<const link::OutFrame> burst) override {
    for (const link::OutFrame& frame : burst) {
      for (std::size_t i = 0; i < frame.count; ++i) {
        for (const std::byte byte : frame.pieces[i]) sum_ = sum_ + std::to_integer<std::size_t>(byte);
      }
    }
    return burst.size();
  }
  std::size_t receive_burst(std::span<link::InFrame>) override { return 0; }
  std::size_t read_path_errors(std::span<link::PathError>) override { return 0; }

 private:
  volatile std::size_t sum_ = 0;
};

class GroupHarness {
 public:
  explicit GroupHarness(FuzzedDataProvider& input)
      : input_(input),
        group_({.key = kKey,
                .path = {},
                .role = Role::of(input.ConsumeIntegralInRange<std::uint64_t>(1, 3)),
                .roster =
                    input.ConsumeBool() ? std::vector{name_of(2), name_of(3)} : std::vector<SocketAddress>{},
                .body_max = kBodyMax,
                .incarnation = 1},
               kStream, random_) {
    for (std::uint8_t member = 0; member < 2; ++member) {
      meet(member);
      segment(
          member,
          {.kind = wire::SegmentKind::group_join, .id = kItsStream, .offset = 1, .total = 3, .key = kKey});
      segment(member, {.kind = wire::SegmentKind::group_start, .id = kItsStream, .total = 1, .key = kKey});
    }
    group_.run(now_, &link_);
  }

  void step() {
    const auto member = input_.ConsumeIntegralInRange<std::uint8_t>(0, 2);
    switch (input_.ConsumeIntegralInRange<int>(0, 11)) {
      case 0: send(); break;
      case 1: now_ += Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 500'000'000)); break;
      case 2: read(member); break;
      case 3: meet(member); break;
      case 4: lose(member); break;
      case 5: carriers_[member].capacity = input_.ConsumeIntegralInRange<std::size_t>(0, 8); break;
      case 6:
        if (input_.ConsumeProbability<float>() < 0.1f) group_.leave();
        break;
      case 7:
      case 8: frame(member); break;
      default: segment(member, made_up()); break;
    }
    group_.run(now_, input_.ConsumeProbability<float>() < 0.9f ? &link_ : nullptr, input_.ConsumeBool());
    group_.take_posted([](Member&) {});
    for (test::QueueCarrier& carrier : carriers_) carrier.items.clear();
    while (!group_.events().empty()) group_.events().pop_front();
    finish();
  }

 private:
  void meet(std::uint8_t member) { group_.meet(name_of(member + 2), nullptr, &carriers_[member]); }
  void lose(std::uint8_t member) {
    if (Member* const known = group_.find(name_of(member + 2))) group_.lose(*known, Status::unreachable);
  }
  void send() {
    if (group_.leaving() || !group_.settings().role.sends) return;
    buffers_.emplace_back(input_.PickValueInArray<std::size_t>({0, 1, 900, 5000}));
    const ConstBytes slice = buffers_.back();
    const bool keep = input_.ConsumeBool();
    wire::Segment shape{.kind = wire::SegmentKind::eager};
    alive_.insert(++tokens_);
    group_.stream().post(shape, {&slice, 1}, slice.size(), keep,
                         input_.PickValueInArray({Until::copied, Until::arrived, Until::delivered}), tokens_);
  }
  void finish() {
    auto& finished = group_.stream().finished();
    for (; !finished.empty(); finished.pop_front()) {
      if (alive_.erase(finished.front().token) == 0) __builtin_trap();
    }
  }
  void read(std::uint8_t member) {
    Member* const known = group_.find(name_of(member + 2));
    if (known == nullptr || known->stream == nullptr) return;
    const ConstBytes front = known->stream->front();
    std::size_t sum = 0;
    for (const std::byte byte : front) sum += std::to_integer<std::size_t>(byte);
    sum_ = sum_ + sum;
    if (front.empty()) return;
    known->stream->consume(input_.ConsumeIntegralInRange<std::size_t>(1, front.size()));
    group_.on_delivery(*known);
  }
  wire::Segment made_up() {
    wire::Segment made;
    made.kind = static_cast<wire::SegmentKind>(input_.ConsumeIntegralInRange<int>(
        static_cast<int>(wire::SegmentKind::group_join), static_cast<int>(wire::SegmentKind::group_end)));
    made.key = kKey;
    made.id = input_.PickValueInArray({kStream, kItsStream, kItsStream + 1});
    made.peer_id = fuzz::near<std::uint32_t>(input_, 0);
    made.offset = fuzz::near<std::uint64_t>(input_, 0);
    made.total = fuzz::near<std::uint64_t>(input_, input_.PickValueInArray<std::uint64_t>({0, kBodyMax}));
    made.flags = input_.ConsumeBool() ? wire::segment_flag::kMore : std::uint8_t{0};
    made.length = input_.ConsumeIntegralInRange<std::uint32_t>(0, 1200);
    return made;
  }
  void segment(std::uint8_t member, const wire::Segment& made) {
    Member* const known = group_.find(name_of(member + 2));
    if (known == nullptr) return;
    const std::vector<std::byte> payload(made.length);
    group_.on_segment(now_, *known, made, payload);
  }
  void frame(std::uint8_t member) {
    const std::vector<std::byte> body(input_.ConsumeIntegralInRange<std::size_t>(0, 1400));
    wire::FrameView view;
    view.kind = wire::FrameKind::group;
    view.session = input_.PickValueInArray({kItsStream, kItsStream + 1, kStream});
    view.sequence = {fuzz::near<std::uint32_t>(input_, 0)};
    view.transmission = {static_cast<std::uint32_t>(kKey)};
    view.segments = body;
    view.ack = {fuzz::near<std::uint32_t>(input_, view.sequence.value + 1)};
    view.largest_acked = {input_.ConsumeIntegralInRange<std::uint32_t>(0, 2)};
    group_.on_frame(now_, view, name_of(member + 2), Duration::zero());
  }

  FuzzedDataProvider& input_;
  Time now_{1s};
  Sink link_;
  test::FakeRandom random_;
  std::array<test::QueueCarrier, 3> carriers_;  ///< they outlive the group, which posts in its end
  std::deque<std::vector<std::byte>> buffers_;
  std::set<MessageToken> alive_;
  MessageToken tokens_ = 0;
  volatile std::size_t sum_ = 0;
  Group group_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kInputMax = 4096;  // every message keeps its buffer
  FuzzedDataProvider input(data, size < kInputMax ? size : kInputMax);
  GroupHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
