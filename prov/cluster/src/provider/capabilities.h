// Capabilities, limits and defaults of the two endpoint types, FI_EP_RDM and FI_EP_DGRAM, as fi_getinfo
// reports them. hints.h compares requests with these values and describe() writes the answer.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>

#include "protocol/ops.h"
#include "wire/datagram_header.h"
#include "wire/frame.h"

namespace cluster::provider {

// Capabilities. Primary ones are granted only when asked for (or when nothing is asked for at all),
// secondary ones that cost nothing are always granted, FI_SOURCE costs a look-up per message. FI_COLLECTIVE is
// granted when it is named, since endpoints without it need not keep messages of teams.
inline constexpr std::uint64_t kMessageCaps = FI_MSG | FI_TAGGED;
inline constexpr std::uint64_t kDirectionCaps = FI_SEND | FI_RECV;
inline constexpr std::uint64_t kRemoteCaps = FI_RMA | FI_ATOMIC;
inline constexpr std::uint64_t kAccessCaps = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t kPrimaryCaps = kMessageCaps | kDirectionCaps | kRemoteCaps | kAccessCaps |
                                              FI_DIRECTED_RECV | FI_MULTI_RECV | FI_MULTICAST;
inline constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr std::uint64_t kCaps =
    kPrimaryCaps | kDomainCaps | FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT | FI_FENCE | FI_COLLECTIVE;
inline constexpr std::uint64_t kTransmitCaps =
    kMessageCaps | FI_SEND | kRemoteCaps | FI_READ | FI_WRITE | FI_FENCE | FI_MULTICAST | FI_COLLECTIVE;
inline constexpr std::uint64_t kReceiveCaps = kMessageCaps | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV |
                                              FI_SOURCE | FI_SOURCE_ERR | kRemoteCaps | FI_REMOTE_READ |
                                              FI_REMOTE_WRITE | FI_RMA_EVENT | FI_COLLECTIVE;

// Bits that libfabric knows on one side. In the other side's attributes they are ignored, because old callers put
// the whole capability word into both. FI_MULTICAST is one of the sender: members of a group receive without it.
inline constexpr std::uint64_t kTransmitOnly = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST |
                                               FI_COLLECTIVE | FI_SEND | FI_READ | FI_WRITE | FI_TRIGGER |
                                               FI_FENCE | FI_HMEM | FI_NAMED_RX_CTX | FI_RMA_PMEM;
inline constexpr std::uint64_t kReceiveOnly = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_COLLECTIVE |
                                              FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV |
                                              FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT |
                                              FI_TRIGGER | FI_HMEM | FI_RMA_PMEM | FI_VARIABLE_MSG;

// What may be the default of all operations. FI_MORE may not: the last of them would wait for one that never comes.
inline constexpr std::uint64_t kTransmitOpFlags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
inline constexpr std::uint64_t kReceiveOpFlags = FI_COMPLETION | FI_MULTI_RECV;
/// Every order is supported, at any size. Those that cost nothing are always granted; the others may delay
/// operations (protocol/ops.h: Ordering) and are granted on request.
inline constexpr std::uint64_t kFreeOrder = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_ATOMIC_RAR |
                                            FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
inline constexpr std::uint64_t kMessageOrder =
    FI_ORDER_STRICT | kFreeOrder | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW;

inline constexpr std::uint32_t kProtocol = FI_PROV_SPECIFIC | wire::kMagic;
inline constexpr std::uint32_t kProtocolVersion = wire::kVersion;
inline constexpr std::size_t kMessageMax = SIZE_MAX / 2;
inline constexpr std::uint64_t kTagFormat =
    0xAAAAAAAAAAAAAAAA;  ///< 64 fields of one bit: any mask is possible

// Datagrams: untagged messages without order and without reliability.
inline constexpr std::uint64_t kDatagramPrimaryCaps = FI_MSG | kDirectionCaps | FI_DIRECTED_RECV;
inline constexpr std::uint64_t kDatagramCaps = kDatagramPrimaryCaps | kDomainCaps | FI_SOURCE;
inline constexpr std::uint64_t kDatagramTransmitFlags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE;

/// One endpoint type.
struct Capabilities {
  fi_ep_type type;
  std::uint64_t primary_caps;  ///< granted on request, or if the hints name none
  std::uint64_t caps;
  std::uint64_t transmit_caps;
  std::uint64_t receive_caps;
  std::uint64_t transmit_flags;
  std::uint64_t message_order;
  std::size_t ordered_max;  ///< largest remote access that is ordered against others
  std::size_t message_max;
  std::size_t remote_ranges_max;
};
inline constexpr Capabilities kRdmCapabilities{
    .type = FI_EP_RDM,
    .primary_caps = kPrimaryCaps,
    .caps = kCaps,
    .transmit_caps = kTransmitCaps,
    .receive_caps = kReceiveCaps,
    .transmit_flags = kTransmitOpFlags,
    .message_order = kMessageOrder,
    .ordered_max = SIZE_MAX,
    .message_max = kMessageMax,
    .remote_ranges_max = protocol::kRmaIovMax,
};
inline constexpr Capabilities kDgramCapabilities{
    .type = FI_EP_DGRAM,
    .primary_caps = kDatagramPrimaryCaps,
    .caps = kDatagramCaps,
    .transmit_caps = kDatagramCaps & kTransmitCaps,
    .receive_caps = kDatagramCaps & kReceiveCaps,
    .transmit_flags = kDatagramTransmitFlags,
    .message_order = FI_ORDER_NONE,
    .ordered_max = 0,
    .message_max = wire::kFrameMax - wire::kDatagramHeaderMax,
    .remote_ranges_max = 0,
};
/// The same for an interface with frames of at most `frame_max` bytes.
Capabilities limit_to_frame(const Capabilities& capabilities, std::size_t frame_max);

inline constexpr std::size_t kQueueSize = 1024;  ///< tx_attr and rx_attr size unless asked otherwise
inline constexpr std::size_t kReceivesMax = 1 << 20;
inline constexpr std::size_t kKeySize = 8;
inline constexpr std::size_t kRegionSlicesMax = 1;
inline constexpr std::size_t kRegionsMax = 1 << 20;
inline constexpr std::size_t kCompletionDataSize = 8;
inline constexpr std::size_t kObjectsMax = 1 << 16;  ///< of each kind in one domain
inline constexpr std::size_t kErrorDataMax = 64;     ///< holds any socket address

/// True if a caller of this version has mr_mode as an enumeration (FI_MR_BASIC or FI_MR_SCALABLE).
inline bool old_registration(std::uint32_t version) { return FI_VERSION_LT(version, FI_VERSION(1, 5)); }

/// Writes `capabilities` and the attributes into `info`, from fi_allocinfo of the bound core: what is not
/// written is zero. The hints, if any, have passed hint_mismatch(). Addresses and names are not written.
void describe(fi_info& info, const Capabilities& capabilities, std::uint32_t version, const fi_info* hints,
              std::uint32_t core_version);

}  // namespace cluster::provider
