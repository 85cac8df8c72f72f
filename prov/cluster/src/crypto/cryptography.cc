#include "crypto/cryptography.h"

#include <cassert>
#include <cstring>

namespace cluster::crypto {
namespace {

void hmac_into(const Cryptography& cryptography, ConstBytes key, ConstBytes message, DerivedKey& out) {
  Digest digest;
  cryptography.hmac(key, message, digest);
  std::memcpy(out.bytes().data(), digest.data(), digest.size());
  wipe(digest);
}

}  // namespace

void extract(const Cryptography& cryptography, std::string_view salt, ConstBytes material, DerivedKey& out) {
  hmac_into(cryptography, as_bytes(salt.data(), salt.size()), material, out);
}

void expand(const Cryptography& cryptography, const DerivedKey& key, std::string_view label,
            ConstBytes context, DerivedKey& out) {
  std::array<std::byte, 201> info;
  const std::size_t size = label.size() + context.size();
  assert(size < info.size());
  std::memcpy(info.data(), label.data(), label.size());
  if (!context.empty()) std::memcpy(info.data() + label.size(), context.data(), context.size());
  info[size] = std::byte{1};  // the number of the first and only block
  hmac_into(cryptography, key.bytes(), ConstBytes(info).first(size + 1), out);
}

}  // namespace cluster::crypto
