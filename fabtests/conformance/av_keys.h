// What libfabric 1.20 added for authorization keys of an address vector, for a program that is compiled with older headers and
// runs with any core.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace conformance {

inline constexpr std::size_t kAvAuthKey = SIZE_MAX;           ///< FI_AV_AUTH_KEY
inline constexpr std::uint64_t kAuthKeyFlag = 1ull << 57;     ///< FI_AUTH_KEY
inline constexpr std::uint32_t kAvAuthKeyApi = FI_VERSION(1, 20);

/// The core knows the calls.
inline bool has_av_keys() { return FI_VERSION_GE(fi_version(), kAvAuthKeyApi); }

/// struct fi_ops_av and struct fi_mr_auth_key, as 1.20 has them.
struct AvKeyOps {
  fi_ops_av older;
  int (*insert_auth_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t);
  int (*lookup_auth_key)(fid_av*, fi_addr_t, void*, std::size_t*);
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t);
};
struct RegionAuthKey {
  fid_av* av;
  fi_addr_t src_addr;
};

/// Null: the provider has no such calls.
inline const AvKeyOps* key_ops(fid_av* av) {
  return av->ops->size >= sizeof(AvKeyOps) ? reinterpret_cast<const AvKeyOps*>(av->ops) : nullptr;
}

}  // namespace conformance
