// What is sealed in pieces is what is sealed as a whole, however short or long the pieces are.
#include "os/libcrypto.h"

#include <array>
#include <vector>

#include "support/fake_environment.h"
#include "support/seal_keys.h"

namespace cluster::os {
namespace {

using crypto::Cipher;
using crypto::Cryptography;

constexpr std::size_t kLengths[] = {0, 1, 32, 100, 255, 256, 257, 1400};

struct Sealed {
  std::vector<std::byte> bytes;
  std::array<std::byte, crypto::kTagSize> tag{};
  bool operator==(const Sealed&) const = default;
};

/// Some bytes in up to eight pieces.
struct Pieces {
  explicit Pieces(test::FakeRandom& random) {
    std::vector<std::size_t> lengths(random.below(9));
    std::size_t total = 0;
    for (std::size_t& length : lengths) total += length = kLengths[random.below(std::size(kLengths))];
    all.resize(total);
    for (std::byte& byte : all) byte = static_cast<std::byte>(random.next() >> 56);
    std::size_t at = 0;
    for (const std::size_t length : lengths) {
      parts.push_back(ConstBytes(all).subspan(at, length));
      at += length;
    }
  }
  std::vector<std::byte> all;
  std::vector<ConstBytes> parts;
};

Sealed sealed(Cipher cipher, std::span<const ConstBytes> associated, std::span<const ConstBytes> plain, std::size_t size) {
  static constexpr std::array<std::byte, 32> kKey{};
  const auto aead = test::libcrypto()->make_aead(cipher, ConstBytes(kKey).first(key_size(cipher)), Cryptography::Direction::seal);
  Sealed result;
  result.bytes.resize(size);
  EXPECT_TRUE(aead != nullptr && aead->seal({}, associated, plain, result.bytes.data(), result.tag.data()));
  return result;
}

TEST(Libcrypto, SealsPiecesAsTheWholeThatTheyAre) {
  test::FakeRandom random(5);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Pieces associated(random);
    const Pieces plain(random);
    const ConstBytes associated_whole(associated.all);
    const ConstBytes plain_whole(plain.all);
    for (const Cipher cipher : {Cipher::aes128_gcm, Cipher::chacha20_poly1305}) {
      EXPECT_EQ(sealed(cipher, associated.parts, plain.parts, plain.all.size()),
                sealed(cipher, {&associated_whole, 1}, {&plain_whole, 1}, plain.all.size()));
    }
  }
}

}  // namespace
}  // namespace cluster::os
