#include "api/ep_options.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "api/fid_object.h"
#include "api/newer_capabilities.h"
#include "base/enumeration.h"
#include "connection/connection_message.h"
#include "engine/engine.h"

namespace cluster::api {
namespace {

constexpr std::size_t kSizeDefault = 1024;  ///< the number of operations if fi_info sets no size

std::size_t value_or(std::size_t value, std::size_t otherwise) { return value != 0 ? value : otherwise; }

protocol::Ordering ordering_for(std::uint64_t order) {
  return {
      .read_after_read = (order & (FI_ORDER_RAR | FI_ORDER_RMA_RAR)) != 0,
      .read_after_write = (order & (FI_ORDER_RAW | FI_ORDER_RMA_RAW)) != 0,
      .write_after_read = (order & (FI_ORDER_WAR | FI_ORDER_RMA_WAR)) != 0,
      .write_after_write = (order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW)) != 0,
      .send_after_read = (order & FI_ORDER_SAR) != 0,
      .read_after_send = (order & FI_ORDER_RAS) != 0,
      .write_after_send = (order & FI_ORDER_WAS) != 0,
  };
}

bool is_connected_type(const fi_info& info) {
  return number_of(attributes_at(info.ep_attr).type) == FI_EP_MSG;
}

/// Returns true if a receive takes messages from one source only. On an endpoint with a connection, this
/// source is the peer.
bool directs_receives(const fi_info& info, bool tagged) {
  return is_connected_type(info) || directs(info.caps, tagged);
}

/// Writes the value of an option. Implements fi_getopt.
int write_option(std::size_t option, void* value, std::size_t* size) {
  if (value == nullptr || size == nullptr) return -FI_EINVAL;
  const bool fits = *size >= sizeof option;
  *size = sizeof option;
  if (!fits) return -FI_ETOOSMALL;
  std::memcpy(value, &option, sizeof option);
  return 0;
}

/// Returns the direction in `flags`: FI_TRANSMIT or FI_RECV. Returns 0 if `flags` do not contain exactly one
/// of them.
std::uint64_t direction_of(std::uint64_t flags) {
  const std::uint64_t direction = flags & (FI_TRANSMIT | FI_RECV);
  return direction == FI_TRANSMIT || direction == FI_RECV ? direction : 0;
}

}  // namespace

int write_cm_data_size(void* value, std::size_t* size) {
  return write_option(connection::kPrivateDataMax, value, size);
}

int EpOptions::check(const fi_info& info) {
  const fi_ep_attr& ep = attributes_at(info.ep_attr);
  const int type = number_of(ep.type);
  if (type != FI_EP_UNSPEC && type != FI_EP_RDM && type != FI_EP_DGRAM && type != FI_EP_MSG)
    return -FI_EINVAL;
  if (type == FI_EP_DGRAM && (info.caps & (FI_TAGGED | FI_RMA | FI_ATOMIC))) return -FI_EINVAL;
  if (attributes_at(info.tx_attr).op_flags & kTxFlagsUnsupported) return -FI_EBADFLAGS;
  if (attributes_at(info.rx_attr).op_flags & kRxFlagsUnsupported) return -FI_EBADFLAGS;
  return 0;
}

EpOptions::EpOptions(const fi_info& info)
    : source_mask_(directs_receives(info, false) ? 0 : protocol::kAddrUnspec),
      tagged_source_mask_(directs_receives(info, true) ? 0 : protocol::kAddrUnspec),
      connects_(is_connected_type(info)),
      caps_(info.caps),
      ordering_(ordering_for(attributes_at(info.tx_attr).msg_order)),
      tx_op_flags_(attributes_at(info.tx_attr).op_flags),
      rx_op_flags_(attributes_at(info.rx_attr).op_flags),
      tx_size_(value_or(attributes_at(info.tx_attr).size, kSizeDefault)),
      rx_size_(value_or(attributes_at(info.rx_attr).size, kSizeDefault)) {
  const std::size_t message =
      value_or(attributes_at(info.ep_attr).max_msg_size, std::numeric_limits<std::size_t>::max());
  const std::size_t inject =
      std::min({value_or(attributes_at(info.tx_attr).inject_size, protocol::kInjectMax), protocol::kInjectMax,
                message});
  for (Limits& limits : limits_) limits = {message, inject};
  limits_[static_cast<std::size_t>(Operation::atomic)].max_size = std::min(message, protocol::kAtomicMax);
  translate_flags();
}

void EpOptions::set_completion_mode(const CompletionMode& mode) {
  mode_ = mode;
  translate_flags();
}

void EpOptions::translate_flags() {
  tx_flags_ = tx_flags(tx_op_flags_);
  tx_flags_.has_data = tx_flags_.more = false;  // only the flags of a call can set these two
  report_receives_ = report_receive(rx_op_flags_);
  inject_flags_ = {};
  inject_flags_.report = false;
  inject_flags_.inject = true;
  // The success of an injected message is visible only in a counter, which counts the message at the
  // completion level of the endpoint.
  inject_flags_.completion_level =
      mode_.counts_sends ? tx_flags_.completion_level : protocol::CompletionLevel::inject;
  find_fast_ends();
}

/// Expresses the endpoint's conditions for the fast lane and the frame lane by one length. So a send without
/// flags needs only one comparison.
void EpOptions::find_fast_ends() {
  const Limits& msg = limits(Operation::msg);
  const Limits& tagged = limits(Operation::tagged);
  const std::size_t inject_end = std::min(msg.inject_size, tagged.inject_size) + 1;
  const std::size_t send_end = std::min({msg.max_size, tagged.max_size, engine::ShortSend::kBytesMax}) + 1;
  const auto plain = [](const TxFlags& flags) {
    return !flags.fence && !flags.more && flags.completion_level != protocol::CompletionLevel::delivery;
  };
  fast_send_end_ = !plain(tx_flags_) ? 0 : tx_flags_.inject ? inject_end : send_end;
  fast_inject_end_ = plain(inject_flags_) ? inject_end : 0;
  find_fast_accesses();
}

/// Does the same for the access lane. An access by this lane is complete, at every completion level, as soon
/// as it takes effect. So only a fence keeps an access from the lane.
void EpOptions::find_fast_accesses() {
  const Limits& rma = limits(Operation::rma);
  const std::size_t longest = std::min(rma.max_size, protocol::ShortWrite::kBytesMax);
  const std::size_t longest_inject = std::min(rma.inject_size, longest);
  fast_read_max_ = tx_flags_.fence ? 0 : longest;
  fast_write_max_ = tx_flags_.fence ? 0 : tx_flags_.inject ? longest_inject : longest;
  fast_inject_write_max_ = inject_flags_.fence ? 0 : longest_inject;
}

bool EpOptions::wants_exact_source(bool tagged) const { return demands_source(caps_, tagged); }

bool EpOptions::takes_multi_recv(bool tagged) const { return !tagged || (caps_ & kTaggedMultiRecv); }

bool EpOptions::receives_need_checks(bool tagged) const {
  return wants_exact_source(tagged) || (tagged && takes_multi_recv(tagged) && (rx_op_flags_ & FI_MULTI_RECV));
}

std::size_t* EpOptions::value_of(int option) {
  const auto limits_for = [this](Operation operation) {
    return &limits_[static_cast<std::size_t>(operation)];
  };
  switch (option) {
    case FI_OPT_MIN_MULTI_RECV: return &min_multi_recv_;
    case compat::kOptionMaxMessageSize: return &limits_for(Operation::msg)->max_size;
    case compat::kOptionMaxTaggedSize: return &limits_for(Operation::tagged)->max_size;
    case compat::kOptionInjectMessageSize: return &limits_for(Operation::msg)->inject_size;
    case compat::kOptionInjectTaggedSize: return &limits_for(Operation::tagged)->inject_size;
    case compat::kOptionMaxRmaSize: return &limits_for(Operation::rma)->max_size;
    case compat::kOptionInjectRmaSize: return &limits_for(Operation::rma)->inject_size;
    case compat::kOptionMaxAtomicSize: return &limits_for(Operation::atomic)->max_size;
    case compat::kOptionInjectAtomicSize: return &limits_for(Operation::atomic)->inject_size;
    case FI_OPT_TX_SIZE: return &tx_size_;
    case FI_OPT_RX_SIZE: return &rx_size_;
    default: return nullptr;
  }
}

int EpOptions::get_option(int name, void* value, std::size_t* size) const {
  if (name == FI_OPT_CM_DATA_SIZE && connects_) return write_cm_data_size(value, size);
  const std::size_t* found = const_cast<EpOptions*>(this)->value_of(name);
  return found == nullptr ? -FI_ENOPROTOOPT : write_option(*found, value, size);
}

int EpOptions::set_option(int name, const void* value, std::size_t size) {
  std::size_t* found = value_of(name);
  if (found == nullptr) return -FI_ENOPROTOOPT;
  std::size_t wanted = 0;
  if (value == nullptr || size != sizeof wanted) return -FI_EINVAL;
  std::memcpy(&wanted, value, sizeof wanted);
  if (name == FI_OPT_MIN_MULTI_RECV) {
    // A minimum of 0 is treated as 1, because a full buffer is always released.
    *found = std::max<std::size_t>(wanted, 1);
    return 0;
  }
  if (wanted > *found) return -FI_EINVAL;
  *found = wanted;
  find_fast_ends();
  return 0;
}

int EpOptions::get_op_flags(std::uint64_t* flags) const {
  const std::uint64_t direction = flags != nullptr ? direction_of(*flags) : 0;
  if (direction == 0) return -FI_EINVAL;
  *flags = direction == FI_TRANSMIT ? tx_op_flags_ : rx_op_flags_;
  return 0;
}

int EpOptions::set_op_flags(const std::uint64_t* flags) {
  const std::uint64_t direction = flags != nullptr ? direction_of(*flags) : 0;
  if (direction == 0) return -FI_EINVAL;
  const std::uint64_t wanted = *flags & ~direction;
  const std::uint64_t unsupported = direction == FI_TRANSMIT ? kTxFlagsUnsupported : kRxFlagsUnsupported;
  if (wanted & unsupported & ~(caps_ & FI_TRIGGER)) return -FI_EBADFLAGS;
  (direction == FI_TRANSMIT ? tx_op_flags_ : rx_op_flags_) = wanted;
  translate_flags();
  return 0;
}

}  // namespace cluster::api
