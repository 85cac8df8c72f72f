// Two endpoints with a key, and between them a host that has not the key: it decides which of their frames
// arrive, when, how often and altered in which way, and adds frames of its own, right in form where the form
// is known. What comes out of a sealed link was handed in at the other one for it, unaltered and once. The
// host may also be a router that gives frames another source, and brings back what is sent there.
#include <memory>
#include <set>

#include "fuzz/hostile_input.h"
#include "fuzz/seal_material.h"
#include "seal/keep_alive_seal.h"
#include "seal/sealed_link.h"
#include "support/fake_network.h"

namespace {

using namespace cluster;
using fuzz::credentials;

constexpr std::byte kIpA[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
constexpr std::byte kIpB[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{2}};
constexpr std::byte kIpRouter[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{9}};

class SealedHarness {
 public:
  explicit SealedHarness(FuzzedDataProvider& input)
      : input_(input), mode_(input.ConsumeBool() ? seal::Mode::encrypt : seal::Mode::auth) {
    for (Side& side : sides_) restart(side);
    network_.conditions.joined = input.ConsumeBool();
    network_.conditions.segments = input.ConsumeBool();
    network_.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (on_its_way_) return false;
      record(packet, to);
      return true;
    };
  }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 9)) {
      case 0:
      case 1:
      case 2: send(some_side()); break;
      case 3: clock_advance(); break;
      case 4: add(made_up()); break;
      case 5: add(association_frame()); break;
      case 6: restart(some_side()); break;
      default: pass_on(); break;
    }
    for (Side& side : sides_) receive(side);
  }

 private:
  static constexpr std::size_t kRecordedMax = 64;
  static constexpr std::size_t kPayloadMax = 600;

  struct Recorded {
    SocketAddress from;
    SocketAddress to;
    std::vector<std::byte> bytes;
  };
  struct Side {
    SocketAddress name;
    std::unique_ptr<seal::SealedLink> link;
    std::set<std::vector<std::byte>> expected;  ///< payloads handed in for it and not come yet
  };

  /// What is sent to the router is for the side behind it. The keep-alive responder of that side answers at
  /// once.
  void record(const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
    if (recorded_.size() == kRecordedMax) return;
    const bool to_router = to != sides_[0].name && to != sides_[1].name;
    const SocketAddress& behind = packet.from == sides_[0].name ? sides_[1].name : sides_[0].name;
    const SocketAddress& asked = to_router ? behind : to;
    seal::KeepAliveAnswer answer;
    if (seal::answer_keep_alive(credentials(mode_, 'k'), packet.bytes, asked, answer))
      recorded_.push_back({to, packet.from, {answer.begin(), answer.end()}});
    else
      recorded_.push_back({packet.from, asked, packet.bytes});
  }
  SocketAddress router() {
    return SocketAddress::v4(kIpRouter, input_.ConsumeIntegralInRange<std::uint16_t>(1, 4));
  }

  Side& some_side() { return sides_[input_.ConsumeBool() ? 1 : 0]; }
  Side& other(const Side& side) { return &side == &sides_[0] ? sides_[1] : sides_[0]; }

  /// As if its process had ended and begun anew.
  void restart(Side& side) {
    side.link = std::make_unique<seal::SealedLink>(std::make_unique<test::FakeLink>(network_, side.name),
                                                   credentials(mode_, 'k'), std::vector{side.name},
                                                   world_.environment());
  }
  void clock_advance() {
    world_.clock.advance(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 200'000'000)));
  }

  /// A frame that differs from all others.
  void send(Side& from) {
    Side& to = other(from);
    std::vector<std::byte> payload(input_.ConsumeIntegralInRange<std::size_t>(sizeof serial_, kPayloadMax));
    ++serial_;
    std::memcpy(payload.data(), &serial_, sizeof serial_);
    wire::FrameHeader header{};
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::flow);
    header.length = static_cast<std::uint16_t>(sizeof header + payload.size());
    const link::Path path{to.name, {}, false};
    link::OutFrame frame;
    frame.path = &path;
    frame.add(as_bytes(&header, sizeof header));
    frame.add(payload);
    from.link->send_burst({&frame, 1});
    to.expected.insert(std::move(payload));
  }

  void receive(Side& side) {
    std::array<link::InFrame, 8> frames;
    for (std::size_t count = 1; count != 0;) {
      count = side.link->receive_burst(frames);
      for (const link::InFrame& each : std::span(frames).first(count)) check(side, each);
    }
  }
  void check(Side& side, const link::InFrame& arrival) {
    if (arrival.from.to != other(side).name) __builtin_trap();
    ConstBytes rest = arrival.bytes;
    while (!rest.empty()) {
      wire::FrameHeader header;
      std::memcpy(&header, rest.data(), sizeof header);
      const std::size_t length = header.length;
      const ConstBytes payload =
          rest.subspan(sizeof header, length - sizeof header - sizeof(wire::SealTrailer));
      const auto found = side.expected.find(std::vector<std::byte>(payload.begin(), payload.end()));
      if (found == side.expected.end()) __builtin_trap();
      side.expected.erase(found);
      rest = rest.subspan(length);
    }
  }

  /// One of the recorded frames: mostly as it is and where it was going.
  void pass_on() {
    if (recorded_.empty()) return;
    const std::size_t which = input_.ConsumeIntegralInRange<std::size_t>(0, recorded_.size() - 1);
    Recorded copy = recorded_[recorded_.size() - 1 - which];
    if (input_.ConsumeProbability<float>() < 0.3f) alter(copy);
    add(copy);
  }
  void alter(Recorded& frame) {
    switch (input_.ConsumeIntegralInRange<int>(0, 5)) {
      case 5: frame.from = router(); break;
      case 0: std::swap(frame.from, frame.to); break;
      case 1:
        frame.bytes.resize(input_.ConsumeIntegralInRange<std::size_t>(0, frame.bytes.size() + 40));
        break;
      case 2: frame.from = sides_[input_.ConsumeBool() ? 1 : 0].name; break;
      case 3: {  // two frames back to back, as receive offload hands them over
        const Recorded& next = recorded_[input_.ConsumeIntegralInRange<std::size_t>(0, recorded_.size() - 1)];
        frame.bytes.insert(frame.bytes.end(), next.bytes.begin(), next.bytes.end());
        break;
      }
      default:
        if (frame.bytes.empty()) break;
        frame.bytes[input_.ConsumeIntegralInRange<std::size_t>(0, frame.bytes.size() - 1)] =
            std::byte{input_.ConsumeIntegral<std::uint8_t>()};
    }
  }

  Recorded made_up() {
    const std::vector<std::uint8_t> content = input_.ConsumeBytes<std::uint8_t>(200);
    Recorded frame{some_side().name, some_side().name, std::vector<std::byte>(content.size())};
    if (!content.empty()) std::memcpy(frame.bytes.data(), content.data(), content.size());
    if (frame.bytes.size() < sizeof(wire::FrameHeader)) return frame;
    wire::FrameHeader header;
    std::memcpy(&header, frame.bytes.data(), sizeof header);
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.flags = header.flags | wire::frame_flag::kSealed;
    header.length = static_cast<std::uint16_t>(frame.bytes.size());
    std::memcpy(frame.bytes.data(), &header, sizeof header);
    return frame;
  }
  /// Right in form, under a key that is not the job's, or under none.
  Recorded association_frame() {
    const Side& from = some_side();
    const Side& to = some_side();
    const seal::Credentials own = credentials(mode_, input_.ConsumeBool() ? 'k' : 'x');
    seal::AssociationFrame frame;
    frame.kind =
        input_.ConsumeBool() ? wire::FrameKind::association_request : wire::FrameKind::association_response;
    frame.key_id = own.keys.front()->id();
    frame.mode = input_.ConsumeBool() ? mode_ : seal::Mode::auth;
    frame.sender.salt.fill(input_.ConsumeIntegral<std::uint8_t>());
    frame.sender.addresses = {from.name};
    frame.to = to.name;
    frame.number = fuzz::near<std::uint64_t>(input_, 1);
    std::vector<std::byte> bytes = seal::encode(frame);
    seal::Tag tag{};
    if (input_.ConsumeBool()) {
      const auto other = credentials(mode_, 'x').keys.front();
      tag = other->authenticate(seal::JobKey::Purpose::request, seal::tagged_part(bytes));
    }
    seal::set_tag(bytes, tag);
    return {from.name, to.name, std::move(bytes)};
  }

  void add(const Recorded& frame) {
    const link::Path path{frame.to, {}, false};
    link::OutFrame out;
    out.path = &path;
    out.add(frame.bytes);
    if (out.count == 0) return;
    on_its_way_ = true;
    network_.carry(frame.from, out);
    on_its_way_ = false;
    world_.clock.advance(network_.conditions.delay);
  }

  FuzzedDataProvider& input_;
  const seal::Mode mode_;
  test::FakeEnvironment world_;
  test::FakeNetwork network_{world_.clock, 1};
  std::array<Side, 2> sides_{Side{SocketAddress::v4(kIpA, 1), nullptr, {}},
                             Side{SocketAddress::v4(kIpB, 2), nullptr, {}}};
  std::vector<Recorded> recorded_;
  bool on_its_way_ = false;
  std::uint64_t serial_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  SealedHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
