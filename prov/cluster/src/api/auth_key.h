// An authorization key as applications give it, the auth_key of fi_domain_attr, fi_ep_attr and fi_mr_attr: 16 to 64
// bytes that no other host can guess. It is of use to callers of libfabric 1.5 and later; the fields of others are not set.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "api/new_av_ops.h"
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

/// True for the fi_domain_attr of a caller that keeps its keys in the address vector (FI_AV_AUTH_KEY).
inline bool has_keys_in_av(const fi_domain_attr& attributes, std::uint32_t version) {
  return FI_VERSION_GE(version, kAvAuthKeyVersion) && attributes.auth_key_size == kAvAuthKey;
}
/// Of fi_domain_attr, fi_ep_attr or fi_mr_attr as a caller of this API version has filled it.
template <typename Attributes>
bool auth_key_allowed(const Attributes& attributes, std::uint32_t version) {
  return FI_VERSION_LT(version, FI_VERSION(1, 5)) || AuthKey::allowed(attributes.auth_key, attributes.auth_key_size);
}
/// True if there is one, allowed or not.
template <typename Attributes>
bool names_auth_key(const Attributes& attributes, std::uint32_t version) {
  return !FI_VERSION_LT(version, FI_VERSION(1, 5)) && attributes.auth_key_size != 0;
}
/// An allowed one, or none.
template <typename Attributes>
AuthKey auth_key_of(const Attributes& attributes, std::uint32_t version) {
  return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? AuthKey() : AuthKey(attributes.auth_key, attributes.auth_key_size);
}

// A domain has a key, or none, or says that the address vector has them, and then it has none itself.
inline bool domain_auth_key_allowed(const fi_domain_attr& attributes, std::uint32_t version) {
  return has_keys_in_av(attributes, version) ? attributes.auth_key == nullptr : auth_key_allowed(attributes, version);
}
inline AuthKey domain_auth_key(const fi_domain_attr& attributes, std::uint32_t version) {
  return has_keys_in_av(attributes, version) ? AuthKey() : auth_key_of(attributes, version);
}
/// Endpoints of such a domain have none of their own.
inline bool endpoint_auth_key_allowed(const fi_ep_attr& attributes, std::uint32_t version, bool keys_in_av) {
  return keys_in_av ? attributes.auth_key_size == 0 && attributes.auth_key == nullptr : auth_key_allowed(attributes, version);
}

}  // namespace cluster::api
