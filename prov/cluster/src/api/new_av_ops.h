// What libfabric 1.20 added to address vectors and 1.17's headers, with which the provider is compiled, lack: the end of
// fi_ops_av, and what is said by it. Values and layout do not change in later versions. Callers find the end by the size in the
// table, so older ones do not see it.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

namespace cluster::api {

/// FI_AV_AUTH_KEY, in place of the size of a domain's key: the keys are those of the address vector.
inline constexpr std::size_t kAvAuthKey = SIZE_MAX;
/// FI_AUTH_KEY: a handle is one of a key.
inline constexpr std::uint64_t kAuthKeyFlag = 1ull << 57;
inline constexpr std::uint32_t kAvAuthKeyVersion = FI_VERSION(1, 20);

/// struct fi_mr_auth_key, to which the auth_key of a region points.
struct RegionAuthKey {
  fid_av* av;
  fi_addr_t source;
};

static_assert(sizeof(fi_ops_av) == 64, "libfabric 1.17's end");
struct NewAvOps {
  fi_ops_av base;
  int (*insert_auth_key)(fid_av* av, const void* key, std::size_t size, fi_addr_t* handle, std::uint64_t flags);
  int (*lookup_auth_key)(fid_av* av, fi_addr_t handle, void* key, std::size_t* size);
  int (*set_user_id)(fid_av* av, fi_addr_t handle, fi_addr_t user_id, std::uint64_t flags);
};
static_assert(sizeof(NewAvOps) == 88, "libfabric 1.20's");

}  // namespace cluster::api
