// A relay, two endpoints with the key of the job, and a host without it. The host sees all frames. It decides
// which of them arrive, alters them, sends them again from other sources, and adds frames of its own. The
// relay sends what it forwards only to a source from which an endpoint has joined, and only once. A source
// that no endpoint has joined from gets at most one answer for each frame, and no answer is longer than the
// frame.
#include <algorithm>
#include <map>
#include <set>

#include "fuzz/hostile_input.h"
#include "fuzz/seal_material.h"
#include "relay/relay.h"
#include "support/fake_network.h"

namespace {

using namespace cluster;

SocketAddress host(int last, std::uint16_t port) {
  const std::byte ip[] = {std::byte{10}, std::byte{0}, std::byte{0}, static_cast<std::byte>(last)};
  return SocketAddress::v4(ip, port);
}

class RelayHarness {
 public:
  explicit RelayHarness(FuzzedDataProvider& input) : input_(input) {
    network_.conditions.joined = input.ConsumeBool();
    network_.conditions.segments = input.ConsumeBool();
    network_.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (to != relay_name_) check(packet.bytes, to);
      return to != relay_name_;
    };
  }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 8)) {
      case 0: ask(some_source()); break;
      case 1: join(); break;
      case 2:
      case 3: send(some_source(), tagged(), false); break;
      case 4: send(some_source(), made_up(), false); break;
      case 5:
        world_.clock.advance(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 20'000'000'000)));
        break;
      default: replay(); break;
    }
    world_.clock.advance(network_.conditions.delay);
    while (relay_.poll() != 0) {
    }
  }

 private:
  static constexpr std::size_t kRecordedMax = 64;
  using Frame = std::vector<std::byte>;

  SocketAddress some_source() {
    return host(input_.ConsumeIntegralInRange<int>(1, 3), input_.ConsumeIntegralInRange<std::uint16_t>(1, 2));
  }
  SocketAddress some_name() { return host(input_.ConsumeIntegralInRange<int>(1, 3), 7); }

  /// An endpoint asks for an offer.
  void ask(const SocketAddress& source) {
    wire::RelayMessage message;
    message.name = some_name();
    message.number = ++number_;
    const wire::RelayFrame frame = key_->seal(message);
    send(source, {frame.begin(), frame.end()}, false);
  }
  /// An endpoint accepts an offer that has come to this source.
  void join() {
    if (offers_.empty()) return;
    auto offer = offers_.begin();
    std::advance(offer, input_.ConsumeIntegralInRange<std::size_t>(0, offers_.size() - 1));
    wire::RelayMessage message = offer->second;
    message.kind = wire::FrameKind::relay_join;
    const wire::RelayFrame frame = key_->seal(message);
    joined_.insert(offer->first);
    send(offer->first, {frame.begin(), frame.end()}, false);
  }
  Frame tagged() {
    wire::FrameHeader header{};
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.flags = wire::frame_flag::kSealed;
    Frame frame(sizeof header + sizeof(wire::SealTrailer) +
                input_.ConsumeIntegralInRange<std::size_t>(0, 300));
    header.length = static_cast<std::uint16_t>(frame.size());
    std::memcpy(frame.data(), &header, sizeof header);
    ++serial_;
    std::memcpy(frame.data() + sizeof header, &serial_, sizeof serial_);
    wire::RelayTag tag{};
    tag.magic = wire::kRelayMagic;
    tag.hops = input_.ConsumeIntegralInRange<std::uint8_t>(0, 2);
    tag.member = member_ + (input_.ConsumeProbability<float>() < 0.2f ? 1u : 0u);
    tag.peer = wire::rail_block(some_name());
    const auto* const at = reinterpret_cast<const std::byte*>(&tag);
    frame.insert(frame.end(), at, at + sizeof tag);
    return frame;
  }
  Frame made_up() {
    const std::vector<std::uint8_t> content = input_.ConsumeBytes<std::uint8_t>(200);
    Frame frame(content.size() + 1);
    std::transform(content.begin(), content.end(), frame.begin(),
                   [](std::uint8_t each) { return std::byte{each}; });
    return frame;
  }
  void replay() {
    if (recorded_.empty()) return;
    Frame frame = recorded_[input_.ConsumeIntegralInRange<std::size_t>(0, recorded_.size() - 1)];
    if (input_.ConsumeBool())
      frame[input_.ConsumeIntegralInRange<std::size_t>(0, frame.size() - 1)] ^= std::byte{1};
    if (input_.ConsumeBool()) {
      const Frame& next = recorded_[input_.ConsumeIntegralInRange<std::size_t>(0, recorded_.size() - 1)];
      frame.insert(frame.end(), next.begin(), next.end());
    }
    send(some_source(), frame, true);
  }

  void send(const SocketAddress& from, const Frame& frame, bool again) {
    if (!again && recorded_.size() < kRecordedMax) recorded_.push_back(frame);
    allowed_[from] += 1 + frame.size() / wire::kRelayFrameSize;
    const link::Path path{relay_name_};
    link::OutFrame out;
    out.path = &path;
    out.add(frame);
    network_.carry(from, out);
  }

  /// Sees each frame that the relay sends.
  void check(const Frame& frame, const SocketAddress& to) {
    wire::RelayTag tag;
    if (wire::tagged_frame(frame, tag) != 0) {
      const bool to_joined =
          std::ranges::any_of(joined_, [&](const SocketAddress& each) { return each == to; });
      if (!to_joined || tag.hops != 0) __builtin_trap();
      return;
    }
    const auto message = wire::decode_relay(frame);
    if (!message || !key_->verify(frame) || allowed_[to]-- == 0) __builtin_trap();
    if (message->kind == wire::FrameKind::relay_offer) offers_[to] = *message;
    if (message->kind != wire::FrameKind::relay_joined) return;
    if (!joined_.contains(to) || message->member == 0) __builtin_trap();
    member_ = message->member;
  }

  struct Less {
    bool operator()(const SocketAddress& one, const SocketAddress& other) const {
      return one.words() < other.words();
    }
  };

  FuzzedDataProvider& input_;
  const SocketAddress relay_name_ = host(9, 1);
  test::FakeEnvironment world_;
  test::FakeNetwork network_{world_.clock, 1};
  test::FakeLink link_{network_, relay_name_};
  std::shared_ptr<const relay::RelayKey> key_ =
      relay::relay_keys(fuzz::credentials(seal::Mode::auth, 'k').keys).front();
  relay::Relay relay_{std::vector<relay::JobRelayKeys>{{key_}}, link_, world_.environment(), {.members = 3}};
  std::vector<Frame> recorded_;
  std::map<SocketAddress, wire::RelayMessage, Less> offers_;
  std::set<SocketAddress, Less> joined_;                ///< sources from which an endpoint has joined
  std::map<SocketAddress, std::size_t, Less> allowed_;  ///< how many answers may still go there
  std::uint32_t member_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t serial_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  RelayHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
