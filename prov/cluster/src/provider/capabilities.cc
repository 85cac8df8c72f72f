#include "provider/capabilities.h"

#include <algorithm>

#include "api/fid_object.h"
#include "provider/info_compat.h"

namespace cluster::provider {
namespace {

/// Messages and remote access without a direction have all directions.
std::uint64_t with_direction(std::uint64_t caps) {
  if ((caps & kMessageCaps) != 0 && (caps & kDirectionCaps) == 0) caps |= kDirectionCaps;
  if ((caps & kRemoteCaps) != 0 && (caps & kAccessCaps) == 0) caps |= kAccessCaps;
  return caps;
}

/// What the hints of one side ask for is asked of the endpoint.
std::uint64_t granted_caps(const Capabilities& capabilities, const fi_info& asked) {
  const std::uint64_t of_sides = (api::attributes_at(asked.tx_attr).caps & kTransmitOnly) |
                                 (api::attributes_at(asked.rx_attr).caps & kReceiveOnly);
  const std::uint64_t all = asked.caps == 0 ? capabilities.primary_caps : with_direction(asked.caps);
  return with_direction(all | of_sides) | kDomainCaps;
}

/// The granted capabilities of one side: all of them, or those that the hint of that side names.
std::uint64_t share(std::uint64_t granted, std::uint64_t side, std::uint64_t hinted) {
  const std::uint64_t all = granted & side;
  return (hinted & side) == 0 ? all : all & with_direction(hinted);
}

/// A class is a wish, which programs have without need: the answer says that all traffic has the same.
std::uint32_t traffic_class(std::uint32_t asked) {
  return asked == FI_TC_UNSPEC ? FI_TC_UNSPEC : FI_TC_BEST_EFFORT;
}

/// What both sides of an endpoint have: fi_tx_attr and fi_rx_attr.
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

void describe_endpoint(fi_ep_attr& attributes, const Capabilities& capabilities) {
  attributes.type = capabilities.type;
  attributes.protocol = kProtocol;
  attributes.protocol_version = kProtocolVersion;
  attributes.max_msg_size = capabilities.message_max;
  attributes.max_order_raw_size = capabilities.ordered_max;
  attributes.max_order_war_size = capabilities.ordered_max;
  attributes.max_order_waw_size = capabilities.ordered_max;
  attributes.mem_tag_format = kTagFormat;
  attributes.tx_ctx_cnt = 1;
  attributes.rx_ctx_cnt = 1;
}

/// The three bits that FI_MR_BASIC stands for since 1.5.
constexpr int kBasicBits = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;

/// Callers before 1.5 get one of two models, and newer callers that name exactly one of them get that. Callers that
/// permit all that FI_MR_BASIC stands for get these bits, since keys drawn at random cannot be guessed. All others
/// get 0: keys of the application's choice and offsets from 0; one bit alone is a permission that is not used.
int registration_mode(std::uint32_t version, const fi_domain_attr* hint) {
  const int asked = api::attributes_at(hint).mr_mode;
  if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE) return asked;
  if (old_registration(version)) return FI_MR_SCALABLE;
  return (asked & kBasicBits) == kBasicBits ? kBasicBits : 0;
}

void describe_domain(fi_domain_attr& attributes, std::uint32_t version, const fi_domain_attr* hint,
                     std::uint32_t core_version) {
  attributes.threading = FI_THREAD_SAFE;
  attributes.control_progress = FI_PROGRESS_MANUAL;
  attributes.data_progress = FI_PROGRESS_MANUAL;
  attributes.resource_mgmt = FI_RM_ENABLED;
  attributes.av_type = FI_AV_UNSPEC;
  if (hint != nullptr) {
    // Consumers compare these with what they asked for.
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
  attributes.cntr_cnt = kObjectsMax;
  attributes.mr_iov_limit = kRegionSlicesMax;
  attributes.caps = kDomainCaps;
  attributes.max_err_data = kErrorDataMax;
  attributes.mr_cnt = kRegionsMax;
  kMaxCounterValue.write(attributes, core_version, UINT64_MAX);
  kMaxErrorCounterValue.write(attributes, core_version, UINT64_MAX);
}

}  // namespace

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
  info.caps = granted_caps(capabilities, asked);
  describe_side(*info.tx_attr, capabilities, info.caps, capabilities.transmit_caps, asked.tx_attr);
  info.tx_attr->inject_size = std::min(protocol::kInjectMax, capabilities.message_max);
  info.tx_attr->rma_iov_limit = capabilities.remote_ranges_max;
  info.tx_attr->tclass = traffic_class(api::attributes_at(asked.tx_attr).tclass);
  describe_side(*info.rx_attr, capabilities, info.caps, capabilities.receive_caps, asked.rx_attr);
  describe_endpoint(*info.ep_attr, capabilities);
  describe_domain(*info.domain_attr, version, asked.domain_attr, core_version);
}

}  // namespace cluster::provider
