// Receive offload joins a forged frame with the train of the peer that it impersonates. Each frame of the
// train still arrives, whatever the forged frame claims and wherever it lies.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "support/node.h"

namespace cluster::test {
namespace {

using FrameBytes = std::vector<std::byte>;

enum class Security : std::uint8_t { none, auth, encrypt };
enum class Place : std::uint8_t { first, middle, last };
enum class Length : std::uint8_t { its_own, less, over_several };

using TrainCase = std::tuple<Security, Place, Length>;

class ForgedTrain : public EngineTest, public ::testing::WithParamInterface<TrainCase> {
 protected:
  ForgedTrain() {
    network.conditions.joined = true;
    network.conditions.segments = true;
    b.receive();
    a.send();
    pass(a, b);
    EXPECT_EQ(b.got, a.word);
  }
  static NodeKind kind() {
    const Security security = std::get<Security>(GetParam());
    NodeKind kind;
    if (security != Security::none)
      kind.credentials = credentials({"0123456789abcdef"},
                                     security == Security::auth ? seal::Mode::auth : seal::Mode::encrypt);
    return kind;
  }
  /// Frames of one length that `a` has sent in a burst, and that have not arrived.
  std::vector<FrameBytes> lost_train() {
    std::vector<FrameBytes> train;
    network.drop = [&](const FakeNetwork::Packet& packet, const SocketAddress& to) {
      if (to == kB && packet.bytes.size() > 1000) train.push_back(packet.bytes);
      return true;
    };
    const ConstBytes slice(content_);
    EXPECT_EQ(a.engine.send({.slices = {&slice, 1}, .length = slice.size()}), Status::ok);
    a.engine.poll();
    network.drop = nullptr;
    while (!train.empty() && train.back().size() != train.front().size()) train.pop_back();
    return train;
  }
  /// As long as a frame of the train; its header is that of one, which the forger need not even guess.
  static FrameBytes forged(FrameBytes frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    switch (std::get<Length>(GetParam())) {
      case Length::its_own: break;
      case Length::less: header.length = sizeof header + 40; break;
      case Length::over_several: header.length = static_cast<std::uint16_t>(3 * frame.size()); break;
    }
    std::memcpy(frame.data(), &header, sizeof header);
    frame[sizeof header + 20] ^= std::byte{1};
    return frame;
  }
  static std::size_t place_in(std::size_t train) {
    switch (std::get<Place>(GetParam())) {
      case Place::first: return 0;
      case Place::middle: return train / 2;
      default: return train;
    }
  }

  std::vector<std::byte> content_ = std::vector<std::byte>(12'000, std::byte{7});
  Node a{network, kA, kB, 1, nullptr, node_settings(), kind()};
  Node b{network, kB, kA, 2, nullptr, node_settings(), kind()};
};

TEST_P(ForgedTrain, AllThatIsGenuineArrives) {
  const std::vector<FrameBytes> train = lost_train();
  ASSERT_GE(train.size(), 6u);
  const std::size_t place = place_in(train.size());
  const std::uint64_t before = b.counters().frames_received;
  for (std::size_t i = 0; i <= train.size(); ++i) {
    if (i == place) inject(kA, kB, forged(train[train.size() / 2]));
    if (i < train.size()) inject(kA, kB, train[i]);
  }
  clock.advance(network.conditions.delay);
  b.engine.poll();
  EXPECT_EQ(b.counters().frames_received - before, train.size());
  const Counters& counters = b.counters();
  EXPECT_EQ(counters.refused_malformed + counters.refused_checksum + counters.refused_forged, 1u);
}

std::string name_of(const ::testing::TestParamInfo<TrainCase>& info) {
  constexpr const char* kSecurity[] = {"Unkeyed", "Auth", "Encrypt"};
  constexpr const char* kPlace[] = {"First", "Middle", "Last"};
  constexpr const char* kLength[] = {"ItsOwnLength", "Less", "OverSeveral"};
  const auto [security, place, length] = info.param;
  return std::string(kSecurity[static_cast<int>(security)]) + kPlace[static_cast<int>(place)] +
         kLength[static_cast<int>(length)];
}

INSTANTIATE_TEST_SUITE_P(
    Places, ForgedTrain,
    ::testing::Combine(::testing::Values(Security::none, Security::auth, Security::encrypt),
                       ::testing::Values(Place::first, Place::middle, Place::last),
                       ::testing::Values(Length::its_own, Length::less, Length::over_several)),
    name_of);

}  // namespace
}  // namespace cluster::test
