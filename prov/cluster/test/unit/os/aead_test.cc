// What is sealed in pieces is what is sealed as a whole, however short or long the pieces are, and both libraries seal and
// open alike.
#include <array>
#include <vector>

#include "os/ipsec_mb.h"
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

/// As little of it as of the nonce is alike in two rounds.
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

Sealed sealed(const Cryptography& by, Cipher cipher, std::span<const ConstBytes> associated, std::span<const ConstBytes> plain,
              std::size_t size, std::size_t round) {
  const auto aead = by.make_aead(cipher, ConstBytes(key_of(round)).first(key_size(cipher)), Cryptography::Direction::seal);
  Sealed result;
  result.bytes.resize(size);
  EXPECT_TRUE(aead != nullptr && aead->seal(nonce_of(round), associated, plain, result.bytes.data(), result.tag.data()));
  return result;
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

TEST(Libcrypto, SealsPiecesAsTheWholeThatTheyAre) {
  test::FakeRandom random(5);
  for (std::size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Pieces associated(random);
    const Pieces plain(random);
    const ConstBytes associated_whole(associated.all);
    const ConstBytes plain_whole(plain.all);
    for (const Cipher cipher : {Cipher::aes128_gcm, Cipher::chacha20_poly1305}) {
      const Cryptography& by = *test::libcrypto();
      EXPECT_EQ(sealed(by, cipher, associated.parts, plain.parts, plain.all.size(), round),
                sealed(by, cipher, {&associated_whole, 1}, {&plain_whole, 1}, plain.all.size(), round));
    }
  }
}

/// In the shapes of frames: a header and what is encrypted, or all of it as associated data.
TEST(IpsecMb, SealsWhatLibcryptoSeals) {
  const auto library = fastest();
  test::FakeRandom random(6);
  for (std::size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Pieces frame(random);
    const ConstBytes whole(frame.all);
    EXPECT_EQ(sealed(*library, Cipher::aes128_gcm, frame.parts, {}, 0, round), sealed(*test::libcrypto(), Cipher::aes128_gcm, {&whole, 1}, {}, 0, round));
    const ConstBytes header = ConstBytes(kHeader);
    EXPECT_EQ(sealed(*library, Cipher::aes128_gcm, {&header, 1}, frame.parts, whole.size(), round),
              sealed(*test::libcrypto(), Cipher::aes128_gcm, {&header, 1}, {&whole, 1}, whole.size(), round));
  }
}

TEST(IpsecMb, OpensWhatLibcryptoHasSealedAndNothingElse) {
  const auto library = fastest();
  test::FakeRandom random(7);
  for (std::size_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Pieces frame(random);
    const ConstBytes whole(frame.all);
    const bool encrypt = round % 2 == 0;
    const ConstBytes associated = encrypt ? ConstBytes(kHeader) : whole;
    const std::span<const ConstBytes> plain(&whole, encrypt ? 1 : 0);
    Sealed one = sealed(*test::libcrypto(), Cipher::aes128_gcm, {&associated, 1}, plain, encrypt ? whole.size() : 0, round);
    const auto aead = library->make_aead(Cipher::aes128_gcm, ConstBytes(key_of(round)).first(16), Cryptography::Direction::open);
    std::vector<std::byte> opened = one.bytes;
    ASSERT_TRUE(aead->open(nonce_of(round), {&associated, 1}, opened, one.tag.data()));
    if (encrypt) {
      EXPECT_EQ(opened, frame.all);
    }
    one.tag[random.below(one.tag.size())] ^= std::byte{1};
    EXPECT_FALSE(aead->open(nonce_of(round), {&associated, 1}, one.bytes, one.tag.data()));
  }
}

}  // namespace
}  // namespace cluster::os
