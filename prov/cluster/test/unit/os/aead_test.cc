// Both libraries seal and open alike, for any length of frame and associated data.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "os/libcrypto.h"
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

std::vector<std::byte> some_bytes(test::FakeRandom& random) {
  std::vector<std::byte> bytes(kLengths[random.below(std::size(kLengths))]);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() >> 56);
  return bytes;
}

/// It differs in each round, as the nonce does.
std::array<std::byte, 32> key_of(std::size_t round) {
  std::array<std::byte, 32> key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::byte>(round * 7 + i * 31);
  return key;
}
crypto::Nonce nonce_of(std::size_t round) {
  crypto::Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::byte>(round + i * 13);
  return nonce;
}

Sealed sealed(const Cryptography& by, Cipher cipher, ConstBytes associated, ConstBytes plain,
              std::size_t round) {
  const auto aead =
      by.make_aead(cipher, ConstBytes(key_of(round)).first(key_size(cipher)), Cryptography::Direction::seal);
  Sealed result;
  result.bytes.assign(plain.begin(), plain.end());
  aead->seal(nonce_of(round), associated, result.bytes, result.tag.data());
  return result;
}

bool opens(const Cryptography& by, Cipher cipher, ConstBytes associated, Sealed& frame, std::size_t round) {
  const auto aead =
      by.make_aead(cipher, ConstBytes(key_of(round)).first(key_size(cipher)), Cryptography::Direction::open);
  return aead->open(nonce_of(round), associated, frame.bytes, frame.tag.data());
}

constexpr std::array<std::byte, 32> kHeader{};

/// Where it is not installed (Debian: libipsec-mb1) and on other processors it is libcrypto.
std::shared_ptr<const Cryptography> fastest() {
  const auto library = prefer_ipsec_mb(test::libcrypto());
#if defined(__x86_64__)
  EXPECT_NE(library, test::libcrypto()) << "install libipsec-mb1";
#endif
  return library;
}

TEST(Libcrypto, OpensWhatItHasSealedAndNothingElse) {
  test::FakeRandom random(5);
  const Cryptography& library = *test::libcrypto();
  for (std::size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::vector<std::byte> associated = some_bytes(random);
    const std::vector<std::byte> plain = some_bytes(random);
    for (const Cipher cipher : {Cipher::aes128_gcm, Cipher::chacha20_poly1305}) {
      const Sealed frame = sealed(library, cipher, associated, plain, round);
      Sealed copy = frame;
      EXPECT_TRUE(opens(library, cipher, associated, copy, round));
      EXPECT_EQ(copy.bytes, plain);
      copy = frame;
      copy.tag[random.below(copy.tag.size())] ^= std::byte{1};
      EXPECT_FALSE(opens(library, cipher, associated, copy, round));
      if (associated.empty()) continue;
      copy = frame;
      associated[random.below(associated.size())] ^= std::byte{1};
      EXPECT_FALSE(opens(library, cipher, associated, copy, round));
    }
  }
}

/// In the shapes of frames: a header and what is encrypted, or all of it as associated data.
TEST(IpsecMb, SealsWhatLibcryptoSeals) {
  const auto library = fastest();
  test::FakeRandom random(6);
  for (std::size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const std::vector<std::byte> frame = some_bytes(random);
    for (const auto& [associated, plain] :
         {std::pair<ConstBytes, ConstBytes>(frame, {}), std::pair<ConstBytes, ConstBytes>(kHeader, frame)}) {
      EXPECT_EQ(sealed(*library, Cipher::aes128_gcm, associated, plain, round),
                sealed(*test::libcrypto(), Cipher::aes128_gcm, associated, plain, round));
    }
  }
}

TEST(IpsecMb, OpensWhatLibcryptoHasSealedAndNothingElse) {
  const auto library = fastest();
  test::FakeRandom random(7);
  for (std::size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const std::vector<std::byte> frame = some_bytes(random);
    for (const auto& [associated, plain] :
         {std::pair<ConstBytes, ConstBytes>(frame, {}), std::pair<ConstBytes, ConstBytes>(kHeader, frame)}) {
      Sealed one = sealed(*test::libcrypto(), Cipher::aes128_gcm, associated, plain, round);
      Sealed opened = one;
      ASSERT_TRUE(opens(*library, Cipher::aes128_gcm, associated, opened, round));
      EXPECT_TRUE(std::equal(opened.bytes.begin(), opened.bytes.end(), plain.begin(), plain.end()));
      one.tag[random.below(one.tag.size())] ^= std::byte{1};
      EXPECT_FALSE(opens(*library, Cipher::aes128_gcm, associated, one, round));
    }
  }
}

}  // namespace
}  // namespace cluster::os
