// An authorization key as applications give it: the auth_key of fi_domain_attr, fi_ep_attr and fi_mr_attr. It
// has 16 to 64 bytes that no other host can guess. Callers of an API before 1.5 do not set these fields.
#pragma once

#include <rdma/fabric.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace cluster::api {

/// Since libfabric 1.20 this size (FI_AV_AUTH_KEY) asks for one key per address. The provider refuses it.
inline constexpr std::size_t kAvAuthKey = SIZE_MAX;

/// The key in an fi_domain_attr, fi_ep_attr or fi_mr_attr; empty if the caller's API version has no such
/// field.
struct GivenAuthKey {
  template <typename Attributes>
  GivenAuthKey(const Attributes& attributes, std::uint32_t version) {
    if (FI_VERSION_LT(version, FI_VERSION(1, 5))) return;
    bytes = attributes.auth_key;
    size = attributes.auth_key_size;
  }
  /// Returns why the key is not allowed; null if it is allowed. An application may also give no key.
  const char* refusal() const {
    if (size == 0 || (bytes != nullptr && size >= 16 && size <= 64)) return nullptr;
    return size == kAvAuthKey
               ? "FI_AV_AUTH_KEY (a key for each address) is not supported; an endpoint has one key"
               : "an auth_key has 16 to 64 bytes";
  }

  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
};

class AuthKey {
 public:
  AuthKey() = default;
  /// `given` must be allowed.
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
