// What fi_getinfo offers: the table of capabilities, and the limits and defaults of the three endpoint types.
// hint_mismatch() compares the offer with a caller's hints, and describe() writes the offer into the answer.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "api/newer_capabilities.h"
#include "protocol/ops.h"
#include "wire/control.h"
#include "wire/frame.h"

namespace cluster::provider {

enum class Grant : std::uint8_t {
  always,   ///< always granted, because it costs nothing
  primary,  ///< granted if the hints ask for it or name no capability at all
  request,  ///< granted only if the hints ask for it, because it costs something
  never,    ///< not supported by the provider
};

/// The attributes in which libfabric lists a capability: tx_attr, rx_attr, or both. A capability with kNoSide
/// is listed only in the attributes of the domain.
enum Side : std::uint8_t { kNoSide = 0, kTransmit = 1, kReceive = 2, kBothSides = kTransmit | kReceive };

/// The endpoint types beside FI_EP_RDM that have a capability: FI_EP_DGRAM, FI_EP_MSG, or both.
enum OtherTypes : std::uint8_t { kOnlyRdm = 0, kDgram = 1, kMsg = 2, kDgramAndMsg = kDgram | kMsg };

struct CapabilityRow {
  std::uint64_t bit;
  const char* name;
  Grant grant;
  Side side;
  OtherTypes also = kOnlyRdm;  ///< which endpoints beside FI_EP_RDM have the capability
  std::uint32_t since = 0;     ///< callers of older API versions cannot ask for the capability
};

/// The table of all capabilities. FI_SOURCE is granted only on request because it costs a look-up per
/// message. FI_COLLECTIVE is granted only on request because an endpoint with this capability has to store
/// messages of teams. FI_MULTICAST has only the transmit side, because libfabric lists it only for senders.
/// But an endpoint that only receives from a group must have FI_MULTICAST as well (api/mc.cc).
inline constexpr CapabilityRow kCapabilityTable[] = {
    {FI_MSG, "FI_MSG", Grant::primary, kBothSides, kDgramAndMsg},
    {FI_TAGGED, "FI_TAGGED", Grant::primary, kBothSides, kMsg},
    {FI_RMA, "FI_RMA", Grant::primary, kBothSides, kMsg},
    {FI_ATOMIC, "FI_ATOMIC", Grant::primary, kBothSides, kMsg},
    {FI_SEND, "FI_SEND", Grant::primary, kTransmit, kDgramAndMsg},
    {FI_RECV, "FI_RECV", Grant::primary, kReceive, kDgramAndMsg},
    {FI_READ, "FI_READ", Grant::primary, kTransmit, kMsg},
    {FI_WRITE, "FI_WRITE", Grant::primary, kTransmit, kMsg},
    {FI_REMOTE_READ, "FI_REMOTE_READ", Grant::primary, kReceive, kMsg},
    {FI_REMOTE_WRITE, "FI_REMOTE_WRITE", Grant::primary, kReceive, kMsg},
    {FI_DIRECTED_RECV, "FI_DIRECTED_RECV", Grant::primary, kReceive, kDgram},
    {api::kTaggedDirectedRecv, "FI_TAGGED_DIRECTED_RECV", Grant::request, kReceive, kOnlyRdm,
     api::kReceiveKindsVersion},
    {api::kExactDirectedRecv, "FI_EXACT_DIRECTED_RECV", Grant::request, kReceive, kDgram,
     api::kReceiveKindsVersion},
    {FI_MULTI_RECV, "FI_MULTI_RECV", Grant::primary, kReceive, kMsg},
    {api::kTaggedMultiRecv, "FI_TAGGED_MULTI_RECV", Grant::request, kReceive, kOnlyRdm,
     api::kReceiveKindsVersion},
    {FI_MULTICAST, "FI_MULTICAST", Grant::primary, kTransmit},
    {FI_COLLECTIVE, "FI_COLLECTIVE", Grant::request, kBothSides},
    {FI_FENCE, "FI_FENCE", Grant::request, kTransmit, kMsg},
    {FI_SOURCE, "FI_SOURCE", Grant::request, kReceive, kDgram},
    {FI_SOURCE_ERR, "FI_SOURCE_ERR", Grant::request, kReceive},
    {FI_RMA_EVENT, "FI_RMA_EVENT", Grant::request, kReceive, kMsg},
    {FI_LOCAL_COMM, "FI_LOCAL_COMM", Grant::always, kNoSide, kDgramAndMsg},
    {FI_REMOTE_COMM, "FI_REMOTE_COMM", Grant::always, kNoSide, kDgramAndMsg},
    {FI_AV_USER_ID, "FI_AV_USER_ID", Grant::request, kNoSide, kDgram, api::kUserIdVersion},
    {FI_TRIGGER, "FI_TRIGGER", Grant::request, kBothSides},
    {FI_HMEM, "FI_HMEM", Grant::never, kBothSides},
    {FI_RMA_PMEM, "FI_RMA_PMEM", Grant::never, kBothSides},
    {FI_NAMED_RX_CTX, "FI_NAMED_RX_CTX", Grant::never, kTransmit},
    {FI_SHARED_AV, "FI_SHARED_AV", Grant::never, kNoSide},
    {FI_PEER, "FI_PEER", Grant::never, kNoSide},
    {api::kXpu, "FI_XPU", Grant::never, kNoSide},
};

/// Returns the bits of all rows whose value in `column` is one of `wanted`.
template <typename Value>
constexpr std::uint64_t capabilities_with(Value CapabilityRow::*column, std::initializer_list<Value> wanted) {
  std::uint64_t bits = 0;
  for (const CapabilityRow& row : kCapabilityTable) {
    for (const Value value : wanted) bits |= row.*column == value ? row.bit : 0;
  }
  return bits;
}

inline constexpr std::uint64_t kPrimaryCaps = capabilities_with(&CapabilityRow::grant, {Grant::primary});
inline constexpr std::uint64_t kDomainCaps = capabilities_with(&CapabilityRow::grant, {Grant::always});
inline constexpr std::uint64_t kCaps =
    kPrimaryCaps | kDomainCaps | capabilities_with(&CapabilityRow::grant, {Grant::request});
/// The offered capabilities that the attributes of the domain list.
inline constexpr std::uint64_t kDomainSide = kCaps & capabilities_with(&CapabilityRow::side, {kNoSide});
inline constexpr std::uint64_t kDatagramCaps =
    capabilities_with(&CapabilityRow::also, {kDgram, kDgramAndMsg});
inline constexpr std::uint64_t kConnectedCaps = capabilities_with(&CapabilityRow::also, {kMsg, kDgramAndMsg});
/// The capabilities that tx_attr and rx_attr may list. Old callers put all capabilities into both attributes.
/// Therefore the provider ignores bits that belong only to the other side.
inline constexpr std::uint64_t kTransmitSide =
    capabilities_with(&CapabilityRow::side, {kTransmit, kBothSides});
inline constexpr std::uint64_t kReceiveSide = capabilities_with(&CapabilityRow::side, {kReceive, kBothSides});
/// The capabilities that the hints in rx_attr may ask for. FI_MULTICAST in rx_attr means that the caller
/// wants to join groups.
inline constexpr std::uint64_t kReceiveHints = kReceiveSide | FI_MULTICAST;

inline constexpr std::uint64_t kMessageCaps = FI_MSG | FI_TAGGED;
inline constexpr std::uint64_t kDirectionCaps = FI_SEND | FI_RECV;
inline constexpr std::uint64_t kRemoteCaps = FI_RMA | FI_ATOMIC;
inline constexpr std::uint64_t kAccessCaps = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

// The flags that may be the default of all operations. FI_MORE is not among them. If it were the default, the
// last operation would wait for a next one that never follows.
inline constexpr std::uint64_t kTransmitOpFlags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
inline constexpr std::uint64_t kReceiveOpFlags = FI_COMPLETION | FI_MULTI_RECV;
/// The orders of operations that FI_EP_RDM and FI_EP_MSG always grant, because these orders cost nothing.
/// They support all other orders as well, for operations of any size. But the other orders may delay
/// operations (protocol/ops.h: Ordering), so they are granted only if the hints ask for them.
inline constexpr std::uint64_t kFreeOrder = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_ATOMIC_RAR |
                                            FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
inline constexpr std::uint64_t kMessageOrder =
    FI_ORDER_STRICT | kFreeOrder | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW;

inline constexpr std::uint32_t kProtocol = FI_PROV_SPECIFIC | wire::kMagic;
inline constexpr std::uint32_t kProtocolVersion = wire::kVersion;
inline constexpr std::size_t kMessageMax = SIZE_MAX / 2;
/// The answer to hints without a tag format: 64 fields of one bit, so any mask is possible.
inline constexpr std::uint64_t kTagFormat = 0xAAAAAAAAAAAAAAAA;

/// The size in tx_attr and rx_attr, unless the hints name one.
inline constexpr std::size_t kQueueSize = 1024;
inline constexpr std::size_t kReceivesMax = 1 << 20;
inline constexpr std::size_t kKeySize = 8;
inline constexpr std::size_t kRegionSlicesMax = 1;
inline constexpr std::size_t kRegionsMax = 1 << 20;
inline constexpr std::size_t kCompletionDataSize = 8;
inline constexpr std::size_t kObjectsMax = 1 << 16;  ///< objects of each kind in one domain
inline constexpr std::size_t kErrorDataMax = 64;     ///< enough for any socket address

struct Capabilities {
  fi_ep_type type;
  std::uint64_t caps;
  std::uint64_t transmit_flags;
  std::uint64_t message_order;
  std::size_t ordered_max;  ///< the longest remote access whose order relative to others is guaranteed
  std::size_t message_max;
  std::size_t remote_ranges_max;
};
inline constexpr Capabilities kRdmCapabilities{
    .type = FI_EP_RDM,
    .caps = kCaps,
    .transmit_flags = kTransmitOpFlags,
    .message_order = kMessageOrder,
    .ordered_max = SIZE_MAX,
    .message_max = kMessageMax,
    .remote_ranges_max = protocol::kRmaIovMax,
};
/// The capabilities of FI_EP_MSG: those that make sense with one peer.
inline constexpr Capabilities kMsgCapabilities{
    .type = FI_EP_MSG,
    .caps = kConnectedCaps,
    .transmit_flags = kTransmitOpFlags,
    .message_order = kMessageOrder,
    .ordered_max = SIZE_MAX,
    .message_max = kMessageMax,
    .remote_ranges_max = protocol::kRmaIovMax,
};
/// The capabilities of FI_EP_DGRAM: untagged messages without order and reliability.
inline constexpr Capabilities kDgramCapabilities{
    .type = FI_EP_DGRAM,
    .caps = kDatagramCaps,
    .transmit_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
    .message_order = FI_ORDER_NONE,
    .ordered_max = 0,
    .message_max = wire::kFrameMax - wire::kDatagramHeaderMax,
    .remote_ranges_max = 0,
};
/// Returns the capabilities for an interface whose frames have at most `frame_max` bytes. These frames limit
/// the message size of FI_EP_DGRAM.
Capabilities limit_to_frame(const Capabilities& capabilities, std::size_t frame_max);

/// Properties of the caller of fi_getinfo and of the core, and a limit that depends on the settings. The core
/// is the libfabric that has loaded the provider.
struct GetinfoCaller {
  std::uint32_t version = 0;       ///< the API version that the caller uses
  std::uint32_t core_version = 0;  ///< the core's version, which determines the length of its structs
  std::size_t sends_max = 4096;    ///< the largest number of concurrent sends of one endpoint
  std::uint32_t provider_version = 0;
};

/// Returns an empty text if the provider can satisfy the hints. Otherwise returns a text for the log, which
/// names the first mismatch. Any attribute struct in the hints may be missing. A field of zero means that the
/// caller accepts any value. A mode field is different: zero means that the caller supports no mode. The
/// provider accepts zero there too, because it needs no mode. Names and addresses are checked in
/// interface_addresses.h.
std::string hint_mismatch(const fi_info& hints, const Capabilities& capabilities,
                          const GetinfoCaller& caller);

/// Writes the capabilities and all attributes into `info`, which must come from the core's fi_allocinfo.
/// Fields that are not written stay zero. If there are hints, hint_mismatch() must have accepted them. The
/// caller writes addresses and names itself.
void describe(fi_info& info, const Capabilities& capabilities, std::uint32_t version, const fi_info* hints,
              std::uint32_t core_version);

}  // namespace cluster::provider
