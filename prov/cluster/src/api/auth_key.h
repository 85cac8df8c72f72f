// The authorization key that an application passes as auth_key in fi_domain_attr, fi_ep_attr or fi_mr_attr.
// It has 16 to 64 bytes, which must be hard for other hosts to guess. Before API version 1.5, these structs
// have no auth_key.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace cluster::api {

/// The value of FI_AV_AUTH_KEY. Since libfabric 1.20, an application that sets this key size asks for a
/// separate key for each address. The provider refuses this size.
inline constexpr std::size_t kAvAuthKey = SIZE_MAX;

/// Refers to the key in an attribute struct, or to no key if the caller's API version does not have the
/// field.
struct GivenAuthKey {
  template <typename Attributes>
  GivenAuthKey(const Attributes& attributes, std::uint32_t version) {
    if (FI_VERSION_LT(version, FI_VERSION(1, 5))) return;
    bytes = attributes.auth_key;
    size = attributes.auth_key_size;
  }
  /// Returns the reason why the key is not allowed, or null if it is allowed. An application is also allowed
  /// to pass no key.
  const char* refusal() const {
    if (size == 0 || (bytes != nullptr && size >= 16 && size <= 64)) return nullptr;
    return size == kAvAuthKey
               ? "FI_AV_AUTH_KEY (a key for each address) is not supported; an endpoint has one key"
               : "an auth_key must have 16 to 64 bytes";
  }

  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
};

class AuthKey {
 public:
  AuthKey() = default;
  /// Copies `given`, which must be allowed (see refusal()).
  explicit AuthKey(const GivenAuthKey& given) : size_(given.size) {
    if (size_ != 0) std::memcpy(bytes_.data(), given.bytes, size_);
  }
  AuthKey(const AuthKey&) = delete;
  AuthKey& operator=(const AuthKey&) = delete;
  ~AuthKey() { explicit_bzero(bytes_.data(), bytes_.size()); }

  bool empty() const { return size_ == 0; }
  ConstBytes bytes() const { return ConstBytes(bytes_).first(size_); }

 private:
  std::array<std::byte, 64> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace cluster::api
