// Options and operation flags of an endpoint: what can be read, and what may be made smaller.
#include <rdma/fi_cm.h>

#include <algorithm>
#include <cstring>

#include "api/endpoint.h"
#include "api/option_compat.h"

namespace cluster::api {

void Endpoint::update_flags() {
  tx_flags_ = api::tx_flags(send_flags_, send_selective_);
  tx_flags_.has_data = tx_flags_.more = false;  // per call, never by default
  report_receives_ = report_receive(receive_flags_);
  // Nobody hears of an injected message's success but a counter, which keeps the usual promise.
  inject_promise_ = send_cntr_ != nullptr ? tx_flags_.completion_level : protocol::CompletionLevel::inject;
}

/// The limit behind an option, or null if there is none.
std::size_t* Endpoint::limit_for(int option) {
  switch (option) {
    case FI_OPT_MIN_MULTI_RECV: return &multi_receive_min_;
    case compat::kOptionMaxMessageSize: return &limits_[0].message;
    case compat::kOptionMaxTaggedSize: return &limits_[1].message;
    case compat::kOptionInjectMessageSize: return &limits_[0].inject;
    case compat::kOptionInjectTaggedSize: return &limits_[1].inject;
    case compat::kOptionMaxRmaSize: return &remote_limits_.message;
    case compat::kOptionInjectRmaSize: return &remote_limits_.inject;
    case compat::kOptionMaxAtomicSize: return &atomic_limits_.message;
    case compat::kOptionInjectAtomicSize: return &atomic_limits_.inject;
    case FI_OPT_TX_SIZE: return &tx_size_;
    case FI_OPT_RX_SIZE: return &rx_size_;
    default: return nullptr;
  }
}

int Endpoint::get_option(int name, void* value, std::size_t* size) const {
  const std::size_t* limit = const_cast<Endpoint*>(this)->limit_for(name);
  if (limit == nullptr) return -FI_ENOPROTOOPT;
  if (value == nullptr || size == nullptr) return -FI_EINVAL;
  const bool fits = *size >= sizeof *limit;
  *size = sizeof *limit;
  if (!fits) return -FI_ETOOSMALL;
  std::memcpy(value, limit, sizeof *limit);
  return 0;
}

/// Sizes can be made smaller than they are; the least room of a multi-receive is for the caller to say.
int Endpoint::set_option(int name, const void* value, std::size_t size) {
  std::size_t* limit = limit_for(name);
  if (limit == nullptr) return -FI_ENOPROTOOPT;
  std::size_t wanted = 0;
  if (value == nullptr || size != sizeof wanted) return -FI_EINVAL;
  std::memcpy(&wanted, value, sizeof wanted);
  if (name != FI_OPT_MIN_MULTI_RECV && wanted > *limit) return -FI_EINVAL;
  // A buffer without any room left takes no more messages, whatever the least is.
  *limit = name == FI_OPT_MIN_MULTI_RECV ? std::max<std::size_t>(wanted, 1) : wanted;
  return 0;
}

std::size_t Endpoint::tx_size_left() const { return std::min(tx_size_, live_engine_->tx_size_left()); }

int Endpoint::get_operation_flags(std::uint64_t* flags) const {
  if (flags == nullptr) return -FI_EINVAL;
  const std::uint64_t direction = *flags & (FI_TRANSMIT | FI_RECV);
  if (direction != FI_TRANSMIT && direction != FI_RECV) return -FI_EINVAL;
  *flags = direction == FI_TRANSMIT ? send_flags_ : receive_flags_;
  return 0;
}

int Endpoint::set_operation_flags(const std::uint64_t* flags) {
  if (flags == nullptr) return -FI_EINVAL;
  const std::uint64_t direction = *flags & (FI_TRANSMIT | FI_RECV);
  if (direction != FI_TRANSMIT && direction != FI_RECV) return -FI_EINVAL;
  const std::uint64_t wanted = *flags & ~direction;
  if (wanted & (direction == FI_TRANSMIT ? kTxFlagsUnsupported : kRxFlagsUnsupported)) return -FI_EBADFLAGS;
  (direction == FI_TRANSMIT ? send_flags_ : receive_flags_) = wanted;
  update_flags();
  return 0;
}

}  // namespace cluster::api
