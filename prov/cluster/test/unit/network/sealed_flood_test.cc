// With a key, an engine does not see the frames that its seal drops. A flood of them is still counted and put
// aside, because uncounted frames could wake the process forever.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "seal/association_exchange.h"
#include "support/node.h"

namespace cluster::engine {
namespace {

using test::kA;
using test::kB;
using test::kUnknownSource;
using test::Node;
using wire::FrameKind;

struct Forgery {
  const char* name;
  FrameKind kind;
  std::size_t length;
};

class SealedFloodTest : public test::EngineTest {
 protected:
  static std::vector<std::byte> forged(const Forgery& forgery) {
    wire::FrameHeader header{};
    header.kind = static_cast<std::uint8_t>(FrameKind::flow);
    if (forgery.kind == FrameKind::association_unknown) header = seal::make_notice(header);
    header.magic = wire::kMagic;
    header.version = wire::kVersion;
    header.kind = static_cast<std::uint8_t>(forgery.kind);
    header.flags = wire::frame_flag::kSealed;
    header.length = static_cast<std::uint16_t>(forgery.length);
    header.checksum = 0xABCDEF;
    std::vector<std::byte> bytes(forgery.length, std::byte{0x5A});
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }
  /// At 100,000 a second.
  void flood(Node& node, const Forgery& forgery, int frames) {
    const std::vector<std::byte> bytes = forged(forgery);
    for (int sent = 0; sent < frames; sent += 100) {
      for (int i = 0; i < 100; ++i) inject(kUnknownSource, kA, bytes);
      clock.advance(1ms);
      for (int i = 0; i < 4; ++i) node.engine.poll();
    }
  }
};

constexpr std::size_t kTrailer = sizeof(wire::SealTrailer);
constexpr Forgery kForgeries[] = {
    {"KeepAlives", FrameKind::keep_alive, sizeof(wire::FrameHeader) + kTrailer},
    {"AnswersThatAreTooShort", FrameKind::alive, sizeof(wire::FrameHeader)},
    {"NoticesOfOthers", FrameKind::association_unknown, sizeof(wire::FrameHeader)},
    {"AnswersToNothing", FrameKind::alive, sizeof(wire::FrameHeader) + kTrailer},
    {"DataOfUnknownSenders", FrameKind::flow, sizeof(wire::FrameHeader) + 8 + kTrailer},
};
class SealedFloodOfTest : public SealedFloodTest, public testing::WithParamInterface<Forgery> {};
INSTANTIATE_TEST_SUITE_P(Of, SealedFloodOfTest, testing::ValuesIn(kForgeries),
                         [](const auto& forgery) { return std::string(forgery.param.name); });

TEST_P(SealedFloodOfTest, IsPutAside) {
  Node a(network, kA, kB, 1000, nullptr, test::node_settings(),
         {.credentials = test::credentials({"a key of the job"})});
  flood(a, GetParam(), 8000);
  EXPECT_FALSE(network.thinning.on) << "so many may come at once";
  flood(a, GetParam(), 2000);
  EXPECT_TRUE(network.thinning.on);
}

/// A process that computes takes few turns. If each looked at few frames, those of peers would wait behind
/// the flood, and the engine would see too few to notice a flood (found by the simulator).
TEST_P(SealedFloodOfTest, ATurnLooksAtAsManyFramesAsWithoutAKey) {
  constexpr int kFrames = 100;
  Node a(network, kA, kB, 1000, nullptr, test::node_settings(),
         {.credentials = test::credentials({"a key of the job"})});
  const auto looked_at = [&] {
    const Counters& counters = a.counters();
    return counters.refused_malformed + counters.refused_unsealed + counters.refused_forged +
           counters.refused_replayed + counters.refused_stale + counters.keep_alives_ignored;
  };
  const std::vector<std::byte> bytes = forged(GetParam());
  for (int i = 0; i < kFrames; ++i) inject(kUnknownSource, kA, bytes);
  clock.advance(1ms);
  a.engine.poll();
  EXPECT_EQ(looked_at(), kFrames);
}

/// A notice that always came would tell a host which byte of the session passes the kernel.
TEST_F(SealedFloodTest, OnlyPeersGetNotices) {
  Node a(network, kA, kB, 1000, nullptr, test::node_settings(),
         {.credentials = test::credentials({"a key of the job"})});
  int notices = 0;
  const auto notices_to = [&](const SocketAddress& source) {
    notices = 0;
    network.drop = [&](const test::FakeNetwork::Packet& packet, const SocketAddress& to) {
      wire::FrameHeader header;
      std::memcpy(&header, packet.bytes.data(), sizeof header);
      notices +=
          to == source && header.kind == static_cast<std::uint8_t>(FrameKind::association_unknown) ? 1 : 0;
      return to == source;
    };
    inject(source, kA, forged(kForgeries[4]));
    clock.advance(1ms);
    a.engine.poll();
    network.drop = nullptr;
    return notices;
  };
  a.send();  // asks kB for an association
  clock.advance(1s);
  EXPECT_EQ(notices_to(kUnknownSource), 1);
  EXPECT_EQ(notices_to(kB), 1);
  flood(a, kForgeries[4], 10'000);
  ASSERT_TRUE(network.thinning.on);
  EXPECT_EQ(notices_to(kUnknownSource), 0);
  EXPECT_EQ(notices_to(kB), 1);
}

}  // namespace
}  // namespace cluster::engine
