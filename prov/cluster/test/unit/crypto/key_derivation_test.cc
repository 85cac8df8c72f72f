// HKDF by the vectors of RFC 5869, A.1 and A.3, as far as one block of output goes.
#include <string>

#include "crypto/cryptography.h"
#include "support/seal_keys.h"

namespace cluster::crypto {
namespace {

std::string hex(ConstBytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

TEST(KeyDerivation, IsThatOfTheRfc) {
  const std::string material(22, '\x0b');
  std::string salt;
  for (char c = 0; c <= 0x0c; ++c) salt += c;
  DerivedKey key;
  extract(*test::libcrypto(), salt, as_bytes(material.data(), material.size()), key);
  EXPECT_EQ(hex(key.bytes()), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  DerivedKey expanded;
  const std::string context = "\xf4\xf5\xf6\xf7\xf8\xf9";
  expand(*test::libcrypto(), key, "\xf0\xf1\xf2\xf3", as_bytes(context.data(), context.size()), expanded);
  EXPECT_EQ(hex(expanded.bytes()), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
  extract(*test::libcrypto(), "", as_bytes(material.data(), material.size()), key);
  EXPECT_EQ(hex(key.bytes()), "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04");
}

}  // namespace
}  // namespace cluster::crypto
