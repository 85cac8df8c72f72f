// Capabilities that libfabric added after 1.17, with the API version that added them. They are defined here
// because the provider is compiled with the headers of 1.17. In API versions before 2.0, the bits of the
// three capabilities of receives have other meanings.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace cluster::api {

inline constexpr std::uint32_t kUserIdVersion = FI_VERSION(1, 20);  ///< first with capability FI_AV_USER_ID
inline constexpr std::uint32_t kReceiveKindsVersion = FI_VERSION(2, 0);

inline constexpr std::uint64_t kXpu = 1ull << 44;                 ///< FI_XPU
inline constexpr std::uint64_t kTaggedDirectedRecv = 1ull << 45;  ///< FI_TAGGED_DIRECTED_RECV
inline constexpr std::uint64_t kTaggedMultiRecv = 1ull << 46;     ///< FI_TAGGED_MULTI_RECV
inline constexpr std::uint64_t kExactDirectedRecv = 1ull << 48;   ///< FI_EXACT_DIRECTED_RECV

/// Returns true if receives of this kind (tagged or untagged) take messages from the named source only.
/// FI_EXACT_DIRECTED_RECV alone concerns both kinds. Together with FI_TAGGED_DIRECTED_RECV it concerns tagged
/// receives only.
constexpr bool directs(std::uint64_t caps, bool tagged) {
  if (caps & FI_DIRECTED_RECV) return true;
  if (caps & kTaggedDirectedRecv) return tagged;
  return caps & kExactDirectedRecv;
}

/// Returns true if receives of this kind must name their source.
constexpr bool demands_source(std::uint64_t caps, bool tagged) {
  return (caps & kExactDirectedRecv) && directs(caps, tagged);
}

}  // namespace cluster::api
