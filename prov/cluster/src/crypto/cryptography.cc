#include "crypto/cryptography.h"

#include <cstring>

namespace cluster::crypto {
namespace {

bool hmac_into(const Cryptography& cryptography, ConstBytes key, ConstBytes message, DerivedKey& out) {
  Digest digest;
  const bool done = cryptography.hmac(key, message, digest);
  if (done) std::memcpy(out.bytes().data(), digest.data(), digest.size());
  wipe(digest);
  return done;
}

}  // namespace

bool extract(const Cryptography& cryptography, std::string_view salt, ConstBytes material, DerivedKey& out) {
  return hmac_into(cryptography, as_bytes(salt.data(), salt.size()), material, out);
}

bool expand(const Cryptography& cryptography, const DerivedKey& key, std::string_view label,
            ConstBytes context, DerivedKey& out) {
  std::array<std::byte, 201> info;
  const std::size_t size = label.size() + context.size();
  if (size >= info.size()) return false;
  std::memcpy(info.data(), label.data(), label.size());
  if (!context.empty()) std::memcpy(info.data() + label.size(), context.data(), context.size());
  info[size] = std::byte{1};  // the number of the block, which is the last
  return hmac_into(cryptography, key.bytes(), ConstBytes(info).first(size + 1), out);
}

}  // namespace cluster::crypto
