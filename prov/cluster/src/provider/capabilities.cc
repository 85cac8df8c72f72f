#include "provider/capabilities.h"

#include <algorithm>
#include <cstdio>

#include "api/auth_key.h"
#include "api/fid_object.h"
#include "base/enumeration.h"
#include "provider/info_compat.h"

namespace cluster::provider {
namespace {

/// Returns true if callers of this API version use mr_mode as an enumeration (FI_MR_BASIC or FI_MR_SCALABLE).
/// For newer callers, mr_mode is a set of bits.
bool old_registration(std::uint32_t version) { return FI_VERSION_LT(version, FI_VERSION(1, 5)); }

/// Returns the names of capabilities. A bit without a name, which may belong to a newer libfabric, appears as
/// a number.
std::string names_of(std::uint64_t capabilities) {
  std::string names;
  const auto add = [&](const char* name) { (names += names.empty() ? "" : "|") += name; };
  for (const CapabilityRow& row : kCapabilityTable) {
    if ((capabilities & row.bit) != 0) add(row.name);
    capabilities &= ~row.bit;
  }
  if (capabilities == 0) return names;
  char number[32];
  std::snprintf(number, sizeof number, "0x%llx", static_cast<unsigned long long>(capabilities));
  add(number);
  return names;
}

/// Returns the capabilities for which callers of this API version can ask.
std::uint64_t known_to(std::uint32_t version) {
  std::uint64_t bits = 0;
  for (const CapabilityRow& row : kCapabilityTable) bits |= FI_VERSION_GE(version, row.since) ? row.bit : 0;
  return bits;
}

/// Compares hints with the offer, and stores the first mismatch.
class Check {
 public:
  void capabilities(const char* what, std::uint64_t asked, std::uint64_t offered) {
    if ((asked & ~offered) == 0 || !reason_.empty()) return;
    reason_ = std::string(what) + " " + names_of(asked & ~offered) + " is not supported";
  }
  void subset(const char* what, std::uint64_t asked, std::uint64_t offered) {
    if ((asked & ~offered) != 0) refuse("%s 0x%llx is not supported", what, asked & ~offered);
  }
  void at_most(const char* what, std::uint64_t asked, std::uint64_t offered) {
    if (asked > offered) refuse("%s %llu is above the limit", what, asked);
  }
  void that(bool fulfilled, const char* what) { none(fulfilled ? nullptr : what); }
  void none(const char* mismatch) {
    if (mismatch != nullptr && reason_.empty()) reason_ = mismatch;
  }
  const std::string& reason() const { return reason_; }

 private:
  __attribute__((format(printf, 2, 0), noinline)) void refuse(const char* format, const char* what,
                                                              unsigned long long value) {
    if (!reason_.empty()) return;
    char text[128];
    std::snprintf(text, sizeof text, format, what, value);
    reason_ = text;
  }

  std::string reason_;
};

void check_transmit(Check& check, const Capabilities& capabilities, const fi_tx_attr& hint,
                    std::size_t sends_max) {
  check.capabilities("tx_attr->caps", hint.caps & kTransmitSide, capabilities.caps);
  check.subset("tx_attr->op_flags", hint.op_flags, capabilities.transmit_flags);
  check.subset("tx_attr->msg_order", hint.msg_order, capabilities.message_order);
  check.subset("tx_attr->comp_order", hint.comp_order, FI_ORDER_NONE);
  check.at_most("tx_attr->inject_size", hint.inject_size, protocol::kInjectMax);
  check.at_most("tx_attr->size", hint.size, sends_max);
  check.at_most("tx_attr->iov_limit", hint.iov_limit, protocol::kIovMax);
  check.at_most("tx_attr->rma_iov_limit", hint.rma_iov_limit, capabilities.remote_ranges_max);
}

void check_receive(Check& check, const Capabilities& capabilities, const fi_rx_attr& hint) {
  check.capabilities("rx_attr->caps", hint.caps & kReceiveHints, capabilities.caps);
  check.subset("rx_attr->op_flags", hint.op_flags, kReceiveOpFlags);
  check.subset("rx_attr->msg_order", hint.msg_order, capabilities.message_order);
  check.subset("rx_attr->comp_order", hint.comp_order, FI_ORDER_NONE);
  // An application cannot choose the size of the buffers for unexpected messages, because the flow control by
  // credit determines this size.
  check.at_most("rx_attr->total_buffered_recv", hint.total_buffered_recv, 0);
  check.at_most("rx_attr->size", hint.size, kReceivesMax);
  check.at_most("rx_attr->iov_limit", hint.iov_limit, protocol::kIovMax);
}

void check_endpoint(Check& check, const Capabilities& capabilities, const fi_ep_attr& hint,
                    std::uint32_t version) {
  check.that(number_of(hint.type) == FI_EP_UNSPEC || number_of(hint.type) == capabilities.type,
             "only FI_EP_RDM, FI_EP_MSG and FI_EP_DGRAM endpoints are supported");
  check.that(hint.protocol == FI_PROTO_UNSPEC || hint.protocol == kProtocol,
             "the hints ask for another wire protocol");
  check.at_most("protocol_version", hint.protocol_version, kProtocolVersion);
  check.at_most("max_msg_size", hint.max_msg_size, capabilities.message_max);
  check.at_most("msg_prefix_size", hint.msg_prefix_size, 0);
  check.at_most("max_order_raw_size", hint.max_order_raw_size, capabilities.ordered_max);
  check.at_most("max_order_war_size", hint.max_order_war_size, capabilities.ordered_max);
  check.at_most("max_order_waw_size", hint.max_order_waw_size, capabilities.ordered_max);
  if (hint.tx_ctx_cnt != FI_SHARED_CONTEXT) check.at_most("tx_ctx_cnt", hint.tx_ctx_cnt, 1);
  if (hint.rx_ctx_cnt != FI_SHARED_CONTEXT) check.at_most("rx_ctx_cnt", hint.rx_ctx_cnt, 1);
  check.none(api::GivenAuthKey(hint, version).refusal());
}

bool is_progress(const fi_progress& field) {
  const int level = number_of(field);
  return level == FI_PROGRESS_UNSPEC || level == FI_PROGRESS_AUTO || level == FI_PROGRESS_MANUAL ||
         level == kProgressControlUnified;
}

/// Returns true if the value is allowed for callers of this API version. FI_MR_BASIC and FI_MR_SCALABLE are
/// values of an enumeration and must not be combined with other bits. Since API version 1.5, mr_mode may
/// instead contain other bits, which say what the caller supports.
bool is_registration_mode(int mode, std::uint32_t version) {
  if ((mode & (FI_MR_BASIC | FI_MR_SCALABLE)) != 0) return mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;
  return mode == 0 || !old_registration(version);
}

void check_domain(Check& check, const Capabilities& capabilities, const fi_domain_attr& hint,
                  const GetinfoCaller& caller) {
  // Every known value of control_progress is accepted. Only passive endpoints distinguish the values
  // (api/passive_endpoint.cc). The others connect without calls of the application in any case, because the
  // progress thread takes turns with manual progress, too (engine/background_runner.h).
  check.that(is_progress(hint.control_progress), "unknown control_progress");
  check.that(is_progress(hint.data_progress), "unknown data_progress");
  check.that(number_of(hint.threading) >= FI_THREAD_UNSPEC && number_of(hint.threading) <= FI_THREAD_ENDPOINT,
             "unknown threading");
  check.that(number_of(hint.av_type) >= FI_AV_UNSPEC && number_of(hint.av_type) <= FI_AV_TABLE,
             "unknown av_type");
  check.that(number_of(hint.resource_mgmt) >= FI_RM_UNSPEC && number_of(hint.resource_mgmt) <= FI_RM_ENABLED,
             "unknown resource_mgmt");
  check.that(is_registration_mode(hint.mr_mode, caller.version), "mr_mode is not a registration mode");
  check.at_most("mr_key_size", hint.mr_key_size, kKeySize);
  check.at_most("cq_data_size", hint.cq_data_size, kCompletionDataSize);
  check.at_most("cq_cnt", hint.cq_cnt, kObjectsMax);
  check.at_most("ep_cnt", hint.ep_cnt, kObjectsMax);
  check.at_most("domain_attr->tx_ctx_cnt", hint.tx_ctx_cnt, kObjectsMax);
  check.at_most("domain_attr->rx_ctx_cnt", hint.rx_ctx_cnt, kObjectsMax);
  check.at_most("max_ep_tx_ctx", hint.max_ep_tx_ctx, 1);
  check.at_most("max_ep_rx_ctx", hint.max_ep_rx_ctx, 1);
  check.at_most("max_ep_stx_ctx", hint.max_ep_stx_ctx, kObjectsMax);
  check.at_most("max_ep_srx_ctx", hint.max_ep_srx_ctx, kObjectsMax);
  if (old_registration(caller.version)) return;  // these callers do not have the fields below
  check.at_most("cntr_cnt", hint.cntr_cnt, kObjectsMax);
  check.at_most("mr_iov_limit", hint.mr_iov_limit, kRegionSlicesMax);
  check.capabilities("domain_attr->caps", hint.caps, capabilities.caps & kDomainSide);
  check.none(api::GivenAuthKey(hint, caller.version).refusal());
  check.at_most("max_err_data", hint.max_err_data, kErrorDataMax);
  check.at_most("mr_cnt", hint.mr_cnt, kRegionsMax);
  check.at_most("max_ep_auth_key", kMaxEpAuthKey.read(hint, caller.core_version), 0);
  check.at_most("max_group_id", kMaxGroupId.read(hint, caller.core_version), 0);
}

bool known_format(std::uint32_t format) {
  return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
         format == FI_SOCKADDR_IN6 || format == kSockaddrIp;
}

/// Adds the bits that the hints imply: messages and remote access without a direction mean all directions.
std::uint64_t with_direction(std::uint64_t caps) {
  if ((caps & kMessageCaps) != 0 && (caps & kDirectionCaps) == 0) caps |= kDirectionCaps;
  if ((caps & kRemoteCaps) != 0 && (caps & kAccessCaps) == 0) caps |= kAccessCaps;
  return caps;
}

/// Returns the capabilities of the endpoint. A capability is included even if only tx_attr, only rx_attr or
/// only domain_attr of the hints asks for it.
std::uint64_t granted_caps(const Capabilities& capabilities, std::uint32_t version, const fi_info& asked) {
  const std::uint64_t of_sides = (api::attributes_at(asked.tx_attr).caps & kTransmitSide) |
                                 (api::attributes_at(asked.rx_attr).caps & kReceiveHints);
  const std::uint64_t of_domain = api::attributes_at(asked.domain_attr).caps & kDomainSide;
  const std::uint64_t all = asked.caps == 0 ? capabilities.caps & kPrimaryCaps : with_direction(asked.caps);
  return (with_direction(all | of_sides) | of_domain | kDomainCaps) & known_to(version);
}

/// Returns the granted capabilities of one side. If the side's hint names some of them, returns only those.
std::uint64_t share(std::uint64_t granted, std::uint64_t side, std::uint64_t hinted) {
  const std::uint64_t all = granted & side;
  return (hinted & side) == 0 ? all : all & with_direction(hinted);
}

/// Returns the traffic class for the answer. A request for any class is accepted, because many programs ask
/// for a class that they do not need. The answer to such a request is FI_TC_BEST_EFFORT, because all traffic
/// has one class.
std::uint32_t traffic_class(std::uint32_t asked) {
  return asked == FI_TC_UNSPEC ? FI_TC_UNSPEC : FI_TC_BEST_EFFORT;
}

/// Writes the fields that exist in both fi_tx_attr and fi_rx_attr.
template <typename Attributes>
void describe_side(Attributes& attributes, const Capabilities& capabilities, std::uint64_t granted,
                   std::uint64_t side, const Attributes* hint) {
  const Attributes& hinted = api::attributes_at(hint);
  attributes.caps = share(granted, side, hinted.caps);
  attributes.op_flags = hinted.op_flags;
  attributes.msg_order = (capabilities.message_order & kFreeOrder) | hinted.msg_order;
  attributes.comp_order = FI_ORDER_NONE;
  attributes.size = hinted.size == 0 ? kQueueSize : hinted.size;
  attributes.iov_limit = protocol::kIovMax;
}

/// Tags are compared bit by bit, so every format is supported. libfabric requires that each field in the
/// answer is at least as large as the same field in the hint. kTagFormat has only fields of one bit, so the
/// answer repeats any format in the hint.
std::uint64_t tag_format(std::uint64_t hinted) { return hinted == 0 ? kTagFormat : hinted; }

/// Returns the number of contexts for the answer: an endpoint has one of its own, or shares one.
std::size_t contexts(std::size_t hinted) { return hinted == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1; }

void describe_endpoint(fi_ep_attr& attributes, const Capabilities& capabilities, const fi_ep_attr* hint) {
  attributes.type = capabilities.type;
  attributes.protocol = kProtocol;
  attributes.protocol_version = kProtocolVersion;
  attributes.max_msg_size = capabilities.message_max;
  attributes.max_order_raw_size = capabilities.ordered_max;
  attributes.max_order_war_size = capabilities.ordered_max;
  attributes.max_order_waw_size = capabilities.ordered_max;
  attributes.mem_tag_format = tag_format(api::attributes_at(hint).mem_tag_format);
  attributes.tx_ctx_cnt = contexts(api::attributes_at(hint).tx_ctx_cnt);
  attributes.rx_ctx_cnt = contexts(api::attributes_at(hint).rx_ctx_cnt);
}

/// The three bits that replace FI_MR_BASIC since 1.5.
constexpr int kBasicBits = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;

/// Returns the mr_mode for the answer. A caller that names FI_MR_BASIC or FI_MR_SCALABLE gets this mode.
/// Other callers before 1.5 get FI_MR_SCALABLE. Newer callers that support all three bits of FI_MR_BASIC get
/// these bits, because with these bits the provider generates random keys, which nobody can guess. All other
/// callers get 0: the application chooses the keys, and remote addresses begin at 0.
int registration_mode(std::uint32_t version, const fi_domain_attr* hint) {
  const int asked = api::attributes_at(hint).mr_mode;
  if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE) return asked;
  if (old_registration(version)) return FI_MR_SCALABLE;
  return (asked & kBasicBits) == kBasicBits ? kBasicBits : 0;
}

void describe_domain(fi_domain_attr& attributes, std::uint64_t granted, std::uint32_t version,
                     const fi_domain_attr* hint, std::uint32_t core_version) {
  attributes.threading = FI_THREAD_SAFE;
  attributes.control_progress = FI_PROGRESS_MANUAL;
  attributes.data_progress = FI_PROGRESS_MANUAL;
  attributes.resource_mgmt = FI_RM_ENABLED;
  attributes.av_type = FI_AV_UNSPEC;
  if (hint != nullptr) {
    // These fields repeat the caller's values, because some programs compare the answer with their hints.
    if (hint->threading != FI_THREAD_UNSPEC) attributes.threading = hint->threading;
    if (hint->control_progress != FI_PROGRESS_UNSPEC) attributes.control_progress = hint->control_progress;
    if (hint->data_progress != FI_PROGRESS_UNSPEC) attributes.data_progress = hint->data_progress;
    attributes.av_type = hint->av_type;
    if (!old_registration(version)) attributes.tclass = traffic_class(hint->tclass);
  }
  attributes.mr_mode = registration_mode(version, hint);
  attributes.mr_key_size = kKeySize;
  attributes.cq_data_size = kCompletionDataSize;
  attributes.cq_cnt = kObjectsMax;
  attributes.ep_cnt = kObjectsMax;
  attributes.tx_ctx_cnt = kObjectsMax;
  attributes.rx_ctx_cnt = kObjectsMax;
  attributes.max_ep_tx_ctx = 1;
  attributes.max_ep_rx_ctx = 1;
  attributes.max_ep_stx_ctx = kObjectsMax;
  attributes.max_ep_srx_ctx = kObjectsMax;
  attributes.cntr_cnt = kObjectsMax;
  attributes.mr_iov_limit = kRegionSlicesMax;
  attributes.caps = granted & kDomainSide;
  attributes.max_err_data = kErrorDataMax;
  attributes.mr_cnt = kRegionsMax;
  kMaxCounterValue.write(attributes, core_version, UINT64_MAX);
  kMaxErrorCounterValue.write(attributes, core_version, UINT64_MAX);
}

/// Returns true if the hints ask for endpoints that share their receives.
bool shares_receives(const fi_info& hints) {
  return api::attributes_at(hints.ep_attr).rx_ctx_cnt == FI_SHARED_CONTEXT;
}

/// Endpoints that share receives do not support FI_MULTI_RECV buffers.
constexpr std::uint64_t kNotShared = FI_MULTI_RECV | api::kTaggedMultiRecv;

}  // namespace

std::string hint_mismatch(const fi_info& hints, const Capabilities& capabilities,
                          const GetinfoCaller& caller) {
  Check check;
  Capabilities offered = capabilities;
  offered.caps &= known_to(caller.version);
  if (hints.ep_attr != nullptr) check_endpoint(check, offered, *hints.ep_attr, caller.version);
  if (shares_receives(hints)) {
    const fi_rx_attr& receive = api::attributes_at(hints.rx_attr);
    const std::uint64_t asked = hints.caps | receive.caps | receive.op_flags;
    check.that((asked & kNotShared) == 0, "a shared receive context does not support FI_MULTI_RECV");
  }
  check.capabilities("caps", hints.caps, offered.caps);
  check.that(known_format(hints.addr_format), "addr_format is not a socket address format");
  check.that(hints.handle == nullptr || capabilities.type == FI_EP_MSG,
             "the hints contain a handle, which only FI_EP_MSG endpoints accept");
  if (hints.tx_attr != nullptr) check_transmit(check, offered, *hints.tx_attr, caller.sends_max);
  if (hints.rx_attr != nullptr) check_receive(check, offered, *hints.rx_attr);
  if (hints.domain_attr != nullptr) check_domain(check, offered, *hints.domain_attr, caller);
  if (hints.fabric_attr != nullptr)
    check.at_most("prov_version", hints.fabric_attr->prov_version, caller.provider_version);
  return check.reason();
}

Capabilities limit_to_frame(const Capabilities& capabilities, std::size_t frame_max) {
  Capabilities narrowed = capabilities;
  if (capabilities.type == FI_EP_DGRAM) {
    narrowed.message_max = frame_max - std::min(frame_max, wire::kDatagramHeaderMax);
  }
  return narrowed;
}

void describe(fi_info& info, const Capabilities& capabilities, std::uint32_t version, const fi_info* hints,
              std::uint32_t core_version) {
  const fi_info& asked = api::attributes_at(hints);
  info.caps = granted_caps(capabilities, version, asked);
  if (shares_receives(asked)) info.caps &= ~kNotShared;
  describe_side(*info.tx_attr, capabilities, info.caps, kTransmitSide, asked.tx_attr);
  info.tx_attr->inject_size = std::min(protocol::kInjectMax, capabilities.message_max);
  info.tx_attr->rma_iov_limit = capabilities.remote_ranges_max;
  info.tx_attr->tclass = traffic_class(api::attributes_at(asked.tx_attr).tclass);
  describe_side(*info.rx_attr, capabilities, info.caps, kReceiveSide, asked.rx_attr);
  describe_endpoint(*info.ep_attr, capabilities, asked.ep_attr);
  info.handle = asked.handle;
  describe_domain(*info.domain_attr, info.caps, version, asked.domain_attr, core_version);
}

}  // namespace cluster::provider
