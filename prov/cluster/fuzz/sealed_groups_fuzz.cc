// Two senders to two groups, all with a key, and a host without it between them and a receiver of one group: it decides which
// frames arrive, when, how often, from where and altered in which way, and adds frames of its own. What opens was sealed for this
// group by the sender that it comes from, unaltered, and opens once between two joins.
#include <array>
#include <memory>
#include <set>

#include "fuzz/hostile_input.h"
#include "fuzz/seal_material.h"
#include "seal/group_seal.h"
#include "seal/sealed_link.h"
#include "support/fake_network.h"

namespace {

using namespace cluster;
using fuzz::credentials;

SocketAddress address(std::uint8_t first, std::uint8_t last) {
  const std::byte ip[] = {std::byte{first}, std::byte{1}, std::byte{1}, std::byte{last}};
  return SocketAddress::v4(ip, 7000);
}

class SealedGroupsHarness {
 public:
  explicit SealedGroupsHarness(FuzzedDataProvider& input)
      : input_(input), mode_(input.ConsumeBool() ? seal::Mode::encrypt : seal::Mode::auth) {
    network_.drop = [this](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (recorded_.size() < kRecordedMax) recorded_.push_back({packet.from, to, packet.bytes});
      return true;
    };
    for (std::size_t i = 0; i < senders_.size(); ++i) start(i);
    join();
  }

  void step() {
    switch (input_.ConsumeIntegralInRange<int>(0, 9)) {
      case 0:
      case 1: send(some_sender(), some_group()); break;
      case 2:
        world_.clock.advance(Duration(input_.ConsumeIntegralInRange<std::int64_t>(0, 10'000'000)));
        break;
      case 3: start(some_sender()); break;
      case 4: join(); break;
      case 5: arrive(made_up()); break;
      default: pass_on(); break;
    }
  }

 private:
  static constexpr std::size_t kRecordedMax = 64;
  static constexpr std::size_t kPayloadMax = 400;
  static constexpr std::size_t kBlock = sizeof(wire::FrameHeader);  ///< where the block with the salt lies

  struct Recorded {
    SocketAddress from;
    SocketAddress to;
    std::vector<std::byte> bytes;
  };
  struct Sent {
    SocketAddress from;
    std::vector<std::byte> payload;
    auto operator<=>(const Sent& other) const { return payload <=> other.payload; }
    bool operator==(const Sent&) const = default;
  };

  std::size_t some_sender() { return input_.ConsumeBool() ? 1 : 0; }
  const SocketAddress& some_group() { return groups_[input_.ConsumeBool() ? 1 : 0]; }

  /// As if its process had begun anew.
  void start(std::size_t which) {
    senders_[which] = std::make_unique<seal::SealedLink>(
        std::make_unique<test::FakeLink>(network_, names_[which]), credentials(mode_, 'k'),
        std::vector{names_[which]}, world_.environment());
  }
  /// The receiver has left the group.
  void join() {
    opener_.emplace(credentials(mode_, 'k'), groups_[0], trials_);
    opened_.clear();
  }

  /// A frame that differs from all others.
  void send(std::size_t sender, const SocketAddress& group) {
    std::vector<std::byte> payload(input_.ConsumeIntegralInRange<std::size_t>(sizeof serial_, kPayloadMax));
    ++serial_;
    std::memcpy(payload.data(), &serial_, sizeof serial_);
    wire::FrameHeader header{};
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.kind = static_cast<std::uint8_t>(wire::FrameKind::group);
    header.length = static_cast<std::uint16_t>(sizeof header + payload.size());
    const link::Path path{group, {}, false};
    link::OutFrame frame;
    frame.path = &path;
    frame.add(as_bytes(&header, sizeof header));
    frame.add(payload);
    senders_[sender]->send_burst({&frame, 1});
    if (group == groups_[0]) sent_.insert({names_[sender], std::move(payload)});
  }

  void arrive(Recorded frame) {
    if (frame.bytes.size() < sizeof(wire::FrameHeader)) return;  // SealedGroups has refused it
    const Bytes opened = opener_->open(world_.clock.now(), frame.bytes, frame.from, world_.counters);
    if (opener_->senders() > recorded_.size()) __builtin_trap();  // what does not open leaves nothing behind
    if (opened.empty()) return;
    const ConstBytes payload = opened.subspan(
        sizeof(wire::FrameHeader), opened.size() - sizeof(wire::FrameHeader) - sizeof(wire::SealTrailer));
    const Sent what{frame.from, {payload.begin(), payload.end()}};
    const auto found = sent_.find(what);
    if (found == sent_.end() || !(*found == what)) __builtin_trap();
    if (!opened_.insert(what.payload).second) __builtin_trap();
  }

  /// One of the recorded frames: mostly as it is.
  void pass_on() {
    if (recorded_.empty()) return;
    const std::size_t which = input_.ConsumeIntegralInRange<std::size_t>(0, recorded_.size() - 1);
    Recorded copy = recorded_[recorded_.size() - 1 - which];
    if (input_.ConsumeProbability<float>() < 0.4f) alter(copy);
    arrive(std::move(copy));
  }
  void alter(Recorded& frame) {
    const auto some_byte = [&](std::size_t begin, std::size_t end) {
      frame.bytes[input_.ConsumeIntegralInRange<std::size_t>(begin, end - 1)] =
          std::byte{input_.ConsumeIntegral<std::uint8_t>()};
    };
    switch (input_.ConsumeIntegralInRange<int>(0, 3)) {
      case 0:
        frame.bytes.resize(input_.ConsumeIntegralInRange<std::size_t>(0, frame.bytes.size() + 40));
        break;
      case 1: frame.from = names_[some_sender()]; break;
      case 2: some_byte(kBlock, kBlock + sizeof(seal::GroupSealBlock)); break;
      default: some_byte(0, frame.bytes.size());
    }
  }
  Recorded made_up() {
    const std::vector<std::uint8_t> content = input_.ConsumeBytes<std::uint8_t>(200);
    Recorded frame{names_[some_sender()], groups_[0], std::vector<std::byte>(content.size())};
    if (!content.empty()) std::memcpy(frame.bytes.data(), content.data(), content.size());
    return frame;
  }

  FuzzedDataProvider& input_;
  const seal::Mode mode_;
  test::FakeEnvironment world_;
  test::FakeNetwork network_{world_.clock, 1};
  const std::array<SocketAddress, 2> names_{address(10, 1), address(10, 2)};
  const std::array<SocketAddress, 2> groups_{address(239, 1), address(239, 2)};
  std::array<std::unique_ptr<seal::SealedLink>, 2> senders_;
  std::shared_ptr<seal::Allowance> trials_ =
      std::make_shared<seal::Allowance>(seal::GroupOpener::kTrialInterval, seal::GroupOpener::kTrialsAtOnce);
  std::optional<seal::GroupOpener> opener_;
  std::vector<Recorded> recorded_;
  std::set<Sent> sent_;                      ///< to the first group
  std::set<std::vector<std::byte>> opened_;  ///< since the receiver joined
  std::uint64_t serial_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  SealedGroupsHarness harness(input);
  while (input.remaining_bytes() > 0) harness.step();
  return 0;
}
