// Only keep-alives of the job are answered. Each answer is valid for one question to one address.
#include "seal/keep_alive_seal.h"

#include <cstring>

#include "support/node.h"

namespace cluster::seal {
namespace {

using test::kA;
using test::kB;

std::vector<std::byte> question(const JobKey& key, const SocketAddress& asked, std::uint64_t counter) {
  wire::FrameHeader header{};
  wire::SealTrailer trailer;
  std::vector<std::byte> bytes(sizeof header + 100 + sizeof trailer);
  header.magic = wire::kMagic;
  header.version = wire::kVersion;
  header.kind = static_cast<std::uint8_t>(wire::FrameKind::keep_alive);
  header.flags = wire::frame_flag::kSealed;
  header.length = static_cast<std::uint16_t>(bytes.size());
  header.sequence = 77;
  trailer.counter = counter;
  seal_keep_alive(key, Mode::auth, header, asked, trailer);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + bytes.size() - sizeof trailer, &trailer, sizeof trailer);
  return bytes;
}

TEST(KeepAliveSeal, AMemberOfTheJobIsAnswered) {
  const Credentials keys = test::credentials({"0123456789abcdef", "the one before  "});
  for (const auto& key : keys.keys) {
    KeepAliveAnswer answer;
    ASSERT_TRUE(answer_keep_alive(keys, question(*key, kB, 5), kB, answer));
    wire::FrameHeader header;
    wire::SealTrailer trailer;
    std::memcpy(&header, answer.data(), sizeof header);
    std::memcpy(&trailer, answer.data() + sizeof header, sizeof trailer);
    EXPECT_EQ(header.kind, static_cast<std::uint8_t>(wire::FrameKind::alive));
    EXPECT_EQ(std::uint32_t{header.sequence}, 77u);
    EXPECT_EQ(std::uint64_t{trailer.counter}, 5u);
    EXPECT_TRUE(verify_keep_alive(*key, Mode::auth, header, kB, trailer));
    EXPECT_FALSE(verify_keep_alive(*key, Mode::auth, header, kA, trailer)) << "another process answers";
    trailer.counter = 6;
    EXPECT_FALSE(verify_keep_alive(*key, Mode::auth, header, kB, trailer)) << "an answer to another question";
  }
}

TEST(KeepAliveSeal, NothingElseIsAnswered) {
  const Credentials keys = test::credentials({"0123456789abcdef"});
  const Credentials others = test::credentials({"another key that"});
  const std::vector<std::byte> good = question(*keys.keys[0], kB, 5);
  KeepAliveAnswer answer;
  EXPECT_FALSE(answer_keep_alive(others, good, kB, answer));
  const Credentials other_mode = test::credentials({"0123456789abcdef"}, Mode::encrypt);
  EXPECT_FALSE(answer_keep_alive(other_mode, good, kB, answer)) << "frames of this mode never reach it";
  EXPECT_FALSE(answer_keep_alive(keys, good, kA, answer)) << "it was brought to another process";
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(answer_keep_alive(keys, ConstBytes(good).first(size), kB, answer)) << size;
  }
  for (std::size_t i = 0; i < sizeof(wire::FrameHeader); ++i) {
    std::vector<std::byte> altered = good;
    altered[i] ^= std::byte{1};
    EXPECT_FALSE(answer_keep_alive(keys, altered, kB, answer)) << i;
  }
}

TEST(KeepAliveSeal, AnAnswerIsNoQuestion) {
  const Credentials keys = test::credentials({"0123456789abcdef"});
  KeepAliveAnswer answer;
  ASSERT_TRUE(answer_keep_alive(keys, question(*keys.keys[0], kB, 5), kB, answer));
  KeepAliveAnswer again;
  EXPECT_FALSE(answer_keep_alive(keys, answer, kB, again));
}

}  // namespace
}  // namespace cluster::seal
