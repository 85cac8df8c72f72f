// Constants, and fields of fi_domain_attr, that libfabric added after 1.17, each with the version that added
// it. They are defined here because the provider is compiled with the headers of 1.17. Later versions change
// neither these values nor the offsets of these fields.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cluster::provider {

// A flag of fi_getinfo for internal use (include/ofi.h of every version of libfabric). With this flag, a
// layered provider looks for a provider to build on, which libfabric calls a core provider.
inline constexpr std::uint64_t kCoreProviderOnly = 1ull << 59;

inline constexpr std::uint32_t kSockaddrIp = FI_ADDR_PSMX3 + 4;  ///< FI_SOCKADDR_IP, since 2.3

// FI_PROGRESS_CONTROL_UNIFIED, since 1.21.
inline constexpr int kProgressControlUnified = FI_PROGRESS_MANUAL + 1;

/// A field that a later version appended to fi_domain_attr.
template <typename Value>
struct DomainTail {
  std::size_t offset;
  std::uint32_t since;  ///< the FI_VERSION of the first core that has the field

  /// Writes the field. Does nothing if the core does not have the field.
  void write(fi_domain_attr& attributes, std::uint32_t core_version, Value value) const {
    if (FI_VERSION_GE(core_version, since))
      std::memcpy(reinterpret_cast<char*>(&attributes) + offset, &value, sizeof value);
  }
  /// Returns the value of the field, or zero if the core does not have the field.
  Value read(const fi_domain_attr& attributes, std::uint32_t core_version) const {
    Value value{};
    if (FI_VERSION_GE(core_version, since))
      std::memcpy(&value, reinterpret_cast<const char*>(&attributes) + offset, sizeof value);
    return value;
  }
};

static_assert(sizeof(fi_domain_attr) == 192, "the offsets below count from libfabric 1.17's end");
inline constexpr DomainTail<std::size_t> kMaxEpAuthKey{192, FI_VERSION(1, 20)};
inline constexpr DomainTail<std::uint32_t> kMaxGroupId{200, FI_VERSION(2, 0)};
inline constexpr DomainTail<std::uint64_t> kMaxCounterValue{208, FI_VERSION(2, 5)};
inline constexpr DomainTail<std::uint64_t> kMaxErrorCounterValue{216, FI_VERSION(2, 5)};

}  // namespace cluster::provider
