// An authorization key as applications give it: the auth_key of fi_domain_attr, fi_ep_attr and fi_mr_attr, 16 to 64 bytes that no
// other host can guess. Callers of an API before 1.5 do not set these fields.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace cluster::api {

class AuthKey {
 public:
  static constexpr std::size_t kSizeMin = 16;
  static constexpr std::size_t kSizeMax = 64;

  AuthKey() = default;
  /// An allowed one.
  AuthKey(const std::uint8_t* key, std::size_t size) : size_(size) {
    if (size != 0) std::memcpy(bytes_.data(), key, size);
  }
  AuthKey(const AuthKey&) = delete;
  AuthKey& operator=(const AuthKey&) = delete;
  ~AuthKey() { explicit_bzero(bytes_.data(), bytes_.size()); }

  /// None at all is allowed.
  static bool allowed(const std::uint8_t* key, std::size_t size) {
    return size == 0 || (key != nullptr && size >= kSizeMin && size <= kSizeMax);
  }
  bool empty() const { return size_ == 0; }
  ConstBytes bytes() const { return ConstBytes(bytes_).first(size_); }

 private:
  std::array<std::byte, kSizeMax> bytes_{};
  std::size_t size_ = 0;
};

/// FI_AV_AUTH_KEY of libfabric 1.20, in place of the size of a domain's key, asks for a key for each address. It is refused.
inline constexpr std::size_t kAvAuthKey = SIZE_MAX;

/// Of fi_domain_attr, fi_ep_attr or fi_mr_attr as a caller of this API version has filled it.
template <typename Attributes>
bool auth_key_allowed(const Attributes& attributes, std::uint32_t version) {
  return FI_VERSION_LT(version, FI_VERSION(1, 5)) ||
         AuthKey::allowed(attributes.auth_key, attributes.auth_key_size);
}
/// Why one is not allowed.
template <typename Attributes>
const char* auth_key_refusal(const Attributes& attributes) {
  return attributes.auth_key_size == kAvAuthKey
             ? "FI_AV_AUTH_KEY (a key for each address) is not supported; an endpoint has one key"
             : "an auth_key has 16 to 64 bytes";
}
/// True if there is one, allowed or not.
template <typename Attributes>
bool names_auth_key(const Attributes& attributes, std::uint32_t version) {
  return !FI_VERSION_LT(version, FI_VERSION(1, 5)) && attributes.auth_key_size != 0;
}
/// An allowed one, or none.
template <typename Attributes>
AuthKey auth_key_of(const Attributes& attributes, std::uint32_t version) {
  return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? AuthKey()
                                                  : AuthKey(attributes.auth_key, attributes.auth_key_size);
}

}  // namespace cluster::api
