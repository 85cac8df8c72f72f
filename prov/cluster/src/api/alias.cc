// fi_ep_alias: a second face of an endpoint. It posts through the same engine to the same queues and
// differs in nothing but its operation flags (and in options that are set on it afterwards), so a program
// can keep one face for each way in which it wants to hear of completions.
//
// Invariants: an alias holds its original, which therefore cannot be closed before it; an alias of an
// alias is one of the original; whatever concerns the endpoint as such (bind, enable, name, cancel,
// insight) is asked of the original (`original()`), and an alias made before fi_enable goes live with it.
#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api {

Endpoint::Endpoint(Endpoint& original)
    : fid_ep(original),
      source_mask_(original.source_mask_),
      limits_{original.limits_[0], original.limits_[1]},
      remote_limits_(original.remote_limits_),
      atomic_limits_(original.atomic_limits_),
      caps_(original.caps_),
      ordering_(original.ordering_),
      send_flags_(original.send_flags_),
      receive_flags_(original.receive_flags_),
      tx_size_(original.tx_size_),
      rx_size_(original.rx_size_),
      multi_receive_min_(original.multi_receive_min_),
      service_(original.service_),
      domain_(*original.domain_),
      original_(original.original()) {
  update_flags();
}

/// The flags name one direction and replace its operation flags; the other direction's are inherited.
int Endpoint::open_alias(fid_t* handle, std::uint64_t flags) {
  if (handle == nullptr) return -FI_EINVAL;
  auto alias = std::unique_ptr<Endpoint>(new Endpoint(*this));
  if (const int error = alias->set_operation_flags(&flags)) return error;
  {
    const std::lock_guard guard(original().aliases_lock_);
    original().aliases_.push_back(alias.get());
  }
  if (enabled_) alias->install_ops(*live_engine_);
  *handle = &alias.release()->fid;
  return 0;
}

}  // namespace cluster::api
