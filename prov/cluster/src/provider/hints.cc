#include "provider/hints.h"

#include <rdma/fi_endpoint.h>

#include <cstdio>

#include "api/auth_key.h"
#include "base/enumeration.h"
#include "provider/capabilities.h"
#include "provider/info_compat.h"

namespace cluster::provider {
namespace {

/// Keeps the first mismatch.
class Check {
 public:
  void subset(const char* what, std::uint64_t asked, std::uint64_t offered) {
    if ((asked & ~offered) != 0) refuse("%s 0x%llx is not supported", what, asked & ~offered);
  }
  void at_most(const char* what, std::uint64_t asked, std::uint64_t offered) {
    if (asked > offered) refuse("%s %llu is above the limit", what, asked);
  }
  void that(bool fulfilled, const char* what) {
    if (!fulfilled && reason_.empty()) reason_ = what;
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
  check.subset("tx_attr->caps", hint.caps & kTransmitOnly, capabilities.transmit_caps);
  check.subset("tx_attr->op_flags", hint.op_flags, capabilities.transmit_flags);
  check.subset("tx_attr->msg_order", hint.msg_order, capabilities.message_order);
  check.subset("tx_attr->comp_order", hint.comp_order, FI_ORDER_NONE);
  check.at_most("tx_attr->inject_size", hint.inject_size, protocol::kInjectMax);
  check.at_most("tx_attr->size", hint.size, sends_max);
  check.at_most("tx_attr->iov_limit", hint.iov_limit, protocol::kIovMax);
  check.at_most("tx_attr->rma_iov_limit", hint.rma_iov_limit, capabilities.remote_ranges_max);
}

void check_receive(Check& check, const Capabilities& capabilities, const fi_rx_attr& hint) {
  check.subset("rx_attr->caps", hint.caps & kReceiveOnly, capabilities.receive_caps);
  check.subset("rx_attr->op_flags", hint.op_flags, kReceiveOpFlags);
  check.subset("rx_attr->msg_order", hint.msg_order, capabilities.message_order);
  check.subset("rx_attr->comp_order", hint.comp_order, FI_ORDER_NONE);
  check.at_most("rx_attr->total_buffered_recv", hint.total_buffered_recv,
                0);  // credit decides what is buffered
  check.at_most("rx_attr->size", hint.size, kReceivesMax);
  check.at_most("rx_attr->iov_limit", hint.iov_limit, protocol::kIovMax);
}

void check_endpoint(Check& check, const Capabilities& capabilities, const fi_ep_attr& hint,
                    std::uint32_t version) {
  check.that(number_of(hint.type) == FI_EP_UNSPEC || number_of(hint.type) == capabilities.type,
             "only FI_EP_RDM and FI_EP_DGRAM endpoints are supported");
  check.that(hint.protocol == FI_PROTO_UNSPEC || hint.protocol == kProtocol,
             "the hints ask for another wire protocol");
  check.at_most("protocol_version", hint.protocol_version, kProtocolVersion);
  check.at_most("max_msg_size", hint.max_msg_size, capabilities.message_max);
  check.at_most("msg_prefix_size", hint.msg_prefix_size, 0);
  check.at_most("max_order_raw_size", hint.max_order_raw_size, capabilities.ordered_max);
  check.at_most("max_order_war_size", hint.max_order_war_size, capabilities.ordered_max);
  check.at_most("max_order_waw_size", hint.max_order_waw_size, capabilities.ordered_max);
  check.at_most("tx_ctx_cnt", hint.tx_ctx_cnt, 1);  // FI_SHARED_CONTEXT is the largest of all
  check.at_most("rx_ctx_cnt", hint.rx_ctx_cnt, 1);
  check.that(api::auth_key_allowed(hint, version), api::auth_key_refusal(hint));
}

bool is_progress(const fi_progress& field) {
  const int level = number_of(field);
  return level == FI_PROGRESS_UNSPEC || level == FI_PROGRESS_AUTO || level == FI_PROGRESS_MANUAL ||
         level == kProgressControlUnified;
}

/// FI_MR_BASIC and FI_MR_SCALABLE are values of an enumeration and stand alone; other bits are since 1.5 what the caller can
/// live with.
bool is_registration_mode(int mode, std::uint32_t version) {
  if ((mode & (FI_MR_BASIC | FI_MR_SCALABLE)) != 0) return mode == FI_MR_BASIC || mode == FI_MR_SCALABLE;
  return mode == 0 || !old_registration(version);
}

void check_domain(Check& check, const fi_domain_attr& hint, const GetinfoCaller& caller) {
  // Control operations are complete when their call returns, so every control_progress is satisfied.
  check.that(is_progress(hint.control_progress), "unknown control_progress");
  check.that(is_progress(hint.data_progress), "unknown data_progress");
  check.that(number_of(hint.threading) >= FI_THREAD_UNSPEC && number_of(hint.threading) <= FI_THREAD_ENDPOINT,
             "unknown threading");
  check.that(number_of(hint.av_type) >= FI_AV_UNSPEC && number_of(hint.av_type) <= FI_AV_TABLE,
             "unknown av_type");
  check.that(number_of(hint.resource_mgmt) >= FI_RM_UNSPEC && number_of(hint.resource_mgmt) <= FI_RM_ENABLED,
             "unknown resource_mgmt");
  check.that(is_registration_mode(hint.mr_mode, caller.version), "mr_mode is no registration mode");
  check.at_most("mr_key_size", hint.mr_key_size, kKeySize);
  check.at_most("cq_data_size", hint.cq_data_size, kCompletionDataSize);
  check.at_most("cq_cnt", hint.cq_cnt, kObjectsMax);
  check.at_most("ep_cnt", hint.ep_cnt, kObjectsMax);
  check.at_most("domain_attr->tx_ctx_cnt", hint.tx_ctx_cnt, kObjectsMax);
  check.at_most("domain_attr->rx_ctx_cnt", hint.rx_ctx_cnt, kObjectsMax);
  check.at_most("max_ep_tx_ctx", hint.max_ep_tx_ctx, 1);
  check.at_most("max_ep_rx_ctx", hint.max_ep_rx_ctx, 1);
  check.at_most("max_ep_stx_ctx", hint.max_ep_stx_ctx, 0);
  check.at_most("max_ep_srx_ctx", hint.max_ep_srx_ctx, 0);
  if (old_registration(caller.version)) return;  // the fields below did not exist for such callers
  check.at_most("cntr_cnt", hint.cntr_cnt, kObjectsMax);
  check.at_most("mr_iov_limit", hint.mr_iov_limit, kRegionSlicesMax);
  check.subset("domain_attr->caps", hint.caps, kDomainCaps);
  check.that(api::auth_key_allowed(hint, caller.version), api::auth_key_refusal(hint));
  check.at_most("max_err_data", hint.max_err_data, kErrorDataMax);
  check.at_most("mr_cnt", hint.mr_cnt, kRegionsMax);
  check.at_most("max_ep_auth_key", kMaxEpAuthKey.read(hint, caller.core_version), 0);
  check.at_most("max_group_id", kMaxGroupId.read(hint, caller.core_version), 0);
}

bool known_format(std::uint32_t format) {
  return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
         format == FI_SOCKADDR_IN6 || format == kSockaddrIp;
}

}  // namespace

std::string hint_mismatch(const fi_info& hints, const Capabilities& capabilities,
                          const GetinfoCaller& caller) {
  Check check;
  if (hints.ep_attr != nullptr) check_endpoint(check, capabilities, *hints.ep_attr, caller.version);
  check.subset("caps", hints.caps, capabilities.caps);
  check.that(known_format(hints.addr_format), "addr_format is not a socket address format");
  check.that(hints.handle == nullptr,
             "a handle names a passive endpoint or a request to connect: there is none");
  if (hints.tx_attr != nullptr) check_transmit(check, capabilities, *hints.tx_attr, caller.sends_max);
  if (hints.rx_attr != nullptr) check_receive(check, capabilities, *hints.rx_attr);
  if (hints.domain_attr != nullptr) check_domain(check, *hints.domain_attr, caller);
  if (hints.fabric_attr != nullptr)
    check.at_most("prov_version", hints.fabric_attr->prov_version, caller.provider_version);
  return check.reason();
}

}  // namespace cluster::provider
