#include "api/endpoint.h"

#include <rdma/fi_cm.h>

#include <algorithm>
#include <limits>

#include "api/ops_tables.h"
#include "base/enumeration.h"

namespace cluster::api {
namespace {

constexpr std::size_t kSizeDefault = 1024;  ///< operations, where fi_info says nothing

int bind(fid* endpoint, fid* object, std::uint64_t flags) noexcept {
  return guarded([&] { return object_of<Endpoint>(endpoint).original().bind(object, flags); });
}

int control(fid* endpoint, int command, void* argument) noexcept {
  Endpoint& object = object_of<Endpoint>(endpoint);
  switch (command) {
    case FI_ENABLE: return guarded([&] { return object.original().enable(); });
    case FI_ALIAS: {
      const auto* alias = static_cast<const struct fi_alias*>(argument);
      if (alias == nullptr) return -FI_EINVAL;
      return guarded([&] { return object.open_alias(alias->fid, alias->flags); });
    }
    case FI_GETOPSFLAG: return object.get_operation_flags(static_cast<std::uint64_t*>(argument));
    case FI_SETOPSFLAG: return object.set_operation_flags(static_cast<const std::uint64_t*>(argument));
    default: return -FI_ENOSYS;
  }
}

ssize_t cancel(fid* endpoint, void* context) noexcept {
  return guarded([&] { return object_of<Endpoint>(endpoint).original().cancel(context); });
}

int get_option(fid* endpoint, int level, int name, void* value, std::size_t* size) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return object_of<Endpoint>(endpoint).get_option(name, value, size);
}

int set_option(fid* endpoint, int level, int name, const void* value, std::size_t size) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return object_of<Endpoint>(endpoint).set_option(name, value, size);
}

ssize_t tx_size_left(fid_ep* endpoint) noexcept {
  const Endpoint& object = static_cast<Endpoint&>(*endpoint);
  return object.enabled() ? static_cast<ssize_t>(object.tx_size_left()) : -FI_EOPBADSTATE;
}

/// Receives find room as long as there is memory.
ssize_t rx_size_left(fid_ep* endpoint) noexcept {
  const Endpoint& object = static_cast<Endpoint&>(*endpoint);
  return object.enabled() ? static_cast<ssize_t>(object.rx_size()) : -FI_EOPBADSTATE;
}

constinit fi_ops endpoint_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_object<Endpoint>,
    .bind = bind,
    .control = control,
    .ops_open = open_ops,
    .tostr = kEnosys,
    .ops_set = kEnosys,
};

constinit fi_ops_ep endpoint_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = kEnosys,
    .rx_ctx = kEnosys,
    .rx_size_left = rx_size_left,
    .tx_size_left = tx_size_left,
};

engine::EndpointType service_of(const fi_info& info) {
  const bool datagrams = info.ep_attr != nullptr && info.ep_attr->type == FI_EP_DGRAM;
  return datagrams ? engine::EndpointType::dgram : engine::EndpointType::rdm;
}

/// Zero, in fi_info, stands for "no wish".
std::size_t wish(std::size_t value, std::size_t otherwise) { return value != 0 ? value : otherwise; }

/// What an endpoint was opened with counts, not what it could have had.
protocol::Ordering ordering_for(std::uint64_t order) {
  return {
      .read_after_read = (order & (FI_ORDER_RAR | FI_ORDER_RMA_RAR)) != 0,
      .read_after_write = (order & (FI_ORDER_RAW | FI_ORDER_RMA_RAW)) != 0,
      .write_after_read = (order & (FI_ORDER_WAR | FI_ORDER_RMA_WAR)) != 0,
      .write_after_write = (order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW)) != 0,
      .send_after_read = (order & FI_ORDER_SAR) != 0,
  };
}

int check_info(const fi_info& info) {
  if (const fi_ep_attr* attributes = info.ep_attr) {
    const int type = number_of(attributes->type);
    if (type != FI_EP_UNSPEC && type != FI_EP_RDM && type != FI_EP_DGRAM) return -FI_EINVAL;
    if (type == FI_EP_DGRAM && (info.caps & (FI_TAGGED | FI_RMA | FI_ATOMIC))) return -FI_EINVAL;
    if (attributes->tx_ctx_cnt == FI_SHARED_CONTEXT || attributes->rx_ctx_cnt == FI_SHARED_CONTEXT) {
      return -FI_EINVAL;
    }
  }
  if (info.tx_attr != nullptr && (info.tx_attr->op_flags & kTxFlagsUnsupported)) return -FI_EBADFLAGS;
  if (info.rx_attr != nullptr && (info.rx_attr->op_flags & kRxFlagsUnsupported)) return -FI_EBADFLAGS;
  return 0;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : fid_ep{{FI_CLASS_EP, context, &endpoint_fid_ops},
             &endpoint_ops,
             &cm_ops,
             info.caps & FI_MSG ? &msg_ops_disabled : &msg_ops_unsupported,
             info.caps & FI_RMA ? &rma_ops_disabled : &rma_ops_unsupported,
             info.caps & FI_TAGGED ? &tagged_ops_disabled : &tagged_ops_unsupported,
             info.caps & FI_ATOMIC ? &atomic_ops_disabled : &atomic_ops_unsupported,
             &collective_ops_unsupported},
      source_mask_(info.caps & FI_DIRECTED_RECV ? 0 : protocol::kAddrUnspec),
      caps_(info.caps),
      ordering_(ordering_for(info.tx_attr != nullptr ? info.tx_attr->msg_order : 0)),
      send_flags_(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0),
      receive_flags_(info.rx_attr != nullptr ? info.rx_attr->op_flags : 0),
      tx_size_(wish(info.tx_attr != nullptr ? info.tx_attr->size : 0, kSizeDefault)),
      rx_size_(wish(info.rx_attr != nullptr ? info.rx_attr->size : 0, kSizeDefault)),
      service_(service_of(info)),
      requested_name_(SocketAddress::from(static_cast<const sockaddr*>(info.src_addr), info.src_addrlen)),
      domain_(domain) {
  const std::size_t message =
      wish(info.ep_attr != nullptr ? info.ep_attr->max_msg_size : 0, std::numeric_limits<std::size_t>::max());
  const std::size_t inject =
      std::min(wish(info.tx_attr != nullptr ? info.tx_attr->inject_size : 0, protocol::kInjectMax),
               protocol::kInjectMax);
  limits_[0] = limits_[1] = remote_limits_ = {message, std::min(inject, message)};
  atomic_limits_ = {std::min(message, protocol::kAtomicMax), remote_limits_.inject};
  update_flags();
}

int Endpoint::open(Domain& domain, const fi_info* info, fid_ep** handle, void* context) {
  if (info == nullptr || handle == nullptr) return -FI_EINVAL;
  if (const int error = check_info(*info)) return error;
  *handle = new Endpoint(domain, *info, context);
  return 0;
}

}  // namespace cluster::api
