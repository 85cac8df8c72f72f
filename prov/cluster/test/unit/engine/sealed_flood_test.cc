// With a key an engine sees nothing of the frames that its seal ends; a flood of them is put aside all the same, whatever they are.
// What would not be counted could wake the process for ever.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "seal/association_frame.h"
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

class SealedFloodTest : public test::EngineTest, public testing::WithParamInterface<Forgery> {
 protected:
  static std::vector<std::byte> forged() {
    const Forgery& forgery = GetParam();
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
  void flood(Node& node, int frames) {
    const std::vector<std::byte> bytes = forged();
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
INSTANTIATE_TEST_SUITE_P(Of, SealedFloodTest, testing::ValuesIn(kForgeries),
                         [](const auto& forgery) { return std::string(forgery.param.name); });

TEST_P(SealedFloodTest, IsPutAside) {
  Node a(network, kA, kB, 1000, nullptr, test::node_settings(), {.credentials = test::credentials({"a key of the job"})});
  flood(a, 8000);
  EXPECT_FALSE(network.thinning.unmarked_aside) << "so many may come at once";
  flood(a, 2000);
  EXPECT_TRUE(network.thinning.unmarked_aside);
}

}  // namespace
}  // namespace cluster::engine
