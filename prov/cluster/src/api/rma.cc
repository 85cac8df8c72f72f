// Remote reads and writes (fi_rma): every call is one order.
#include "api/fold.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

/// What the caller names at the peer; false if it is more than is offered.
struct Remote {
  std::array<protocol::RmaIov, protocol::kRmaIovMax> ranges;
  std::size_t length = 0;

  bool take(const fi_rma_iov* vector, std::size_t count) {
    if (count == 0 || count > ranges.size() || vector == nullptr) return false;
    for (std::size_t i = 0; i < count; ++i) {
      ranges[i] = {vector[i].addr, vector[i].key, vector[i].len};
      length += vector[i].len;
    }
    return true;
  }
};

/// `slices` at this side against `ranges` there; they must be of one length.
template <typename Order, typename Slice>
ssize_t act(fid_ep* handle, const TxFlags& manner, std::span<const Slice> slices,
            std::span<const protocol::RmaIov> ranges, std::size_t remote_length, Order order) noexcept {
  order.length = total_size(slices);
  if (order.length != remote_length) return -FI_EINVAL;
  order.slices = slices;
  order.remote = ranges;
  order.report = manner.report;
  order.more = manner.more;
  order.fence = manner.fence;
  return static_cast<Endpoint&>(*handle).access(order);
}

template <typename Order, typename Slice>
ssize_t act_one(fid_ep* handle, Slice bytes, std::uint64_t address, std::uint64_t key, Order order,
                const TxFlags& manner) noexcept {
  const protocol::RmaIov range{address, key, bytes.size()};
  return act<Order, Slice>(handle, manner, {&bytes, 1}, {&range, 1}, bytes.size(), order);
}

template <typename Order, typename Slice>
ssize_t act_vector(fid_ep* handle, const iovec* vector, std::size_t count, std::uint64_t address,
                   std::uint64_t key, Order order) noexcept {
  Slices<Slice> slices;
  if (!slices.take(vector, count)) return -FI_EINVAL;
  const protocol::RmaIov range{address, key, slices.length};
  return act<Order, Slice>(handle, static_cast<Endpoint&>(*handle).tx_flags(), {slices.parts.data(), count},
                           {&range, 1}, slices.length, order);
}

template <typename Order, typename Slice>
ssize_t act_message(fid_ep* handle, const fi_msg_rma* message, const TxFlags& manner, Order order) noexcept {
  Slices<Slice> slices;
  Remote remote;
  if (!slices.take(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  if (!remote.take(message->rma_iov, message->rma_iov_count)) return -FI_EINVAL;
  return act<Order, Slice>(handle, manner, {slices.parts.data(), message->iov_count},
                           {remote.ranges.data(), message->rma_iov_count}, remote.length, order);
}

template <typename Order>
Order to(fi_addr_t peer, void* context) {
  Order order;
  order.to = peer;
  order.context = context;
  return order;
}

protocol::WriteOp with_data(protocol::WriteOp order, std::uint64_t data) {
  order.data = data;
  order.has_data = true;
  return order;
}

using protocol::ReadOp;
using protocol::WriteOp;

const TxFlags& usual(fid_ep* handle) { return static_cast<Endpoint*>(handle)->tx_flags(); }

ssize_t read(fid_ep* endpoint, void* buffer, std::size_t size, void*, fi_addr_t from, std::uint64_t address,
             std::uint64_t key, void* context) noexcept {
  return act_one(endpoint, as_bytes(buffer, size), address, key, to<ReadOp>(from, context), usual(endpoint));
}

ssize_t readv(fid_ep* endpoint, const iovec* vector, void**, std::size_t count, fi_addr_t from,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
  return act_vector<ReadOp, Bytes>(endpoint, vector, count, address, key, to<ReadOp>(from, context));
}

ssize_t readmsg(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  if (flags & kTxFlagsUnsupported) return -FI_EBADFLAGS;
  return act_message<ReadOp, Bytes>(endpoint, message, static_cast<Endpoint*>(endpoint)->tx_flags(flags),
                                    to<ReadOp>(message->addr, message->context));
}

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t size, void*, fi_addr_t peer,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
  WriteOp order = to<WriteOp>(peer, context);
  order.inject = usual(endpoint).inject;
  return act_one(endpoint, as_bytes(buffer, size), address, key, order, usual(endpoint));
}

ssize_t writev(fid_ep* endpoint, const iovec* vector, void**, std::size_t count, fi_addr_t peer,
               std::uint64_t address, std::uint64_t key, void* context) noexcept {
  WriteOp order = to<WriteOp>(peer, context);
  order.inject = usual(endpoint).inject;
  return act_vector<WriteOp, ConstBytes>(endpoint, vector, count, address, key, order);
}

ssize_t writemsg(fid_ep* endpoint, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  if (flags & kTxFlagsUnsupported) return -FI_EBADFLAGS;
  const TxFlags manner = static_cast<Endpoint*>(endpoint)->tx_flags(flags);
  WriteOp order = to<WriteOp>(message->addr, message->context);
  if (manner.has_data) order = with_data(order, message->data);
  order.inject = manner.inject;
  return act_message<WriteOp, ConstBytes>(endpoint, message, manner, order);
}

ssize_t inject_order(fid_ep* endpoint, ConstBytes bytes, std::uint64_t address, std::uint64_t key,
                     WriteOp order) noexcept {
  order.inject = true;
  TxFlags manner;
  manner.report = false;
  return act_one(endpoint, bytes, address, key, order, manner);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t size, fi_addr_t peer, std::uint64_t address,
               std::uint64_t key) noexcept {
  return inject_order(endpoint, as_bytes(buffer, size), address, key, to<WriteOp>(peer, nullptr));
}

ssize_t writedata(fid_ep* endpoint, const void* buffer, std::size_t size, void*, std::uint64_t data,
                  fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) noexcept {
  WriteOp order = with_data(to<WriteOp>(peer, context), data);
  order.inject = usual(endpoint).inject;
  return act_one(endpoint, as_bytes(buffer, size), address, key, order, usual(endpoint));
}

ssize_t injectdata(fid_ep* endpoint, const void* buffer, std::size_t size, std::uint64_t data, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key) noexcept {
  return inject_order(endpoint, as_bytes(buffer, size), address, key,
                      with_data(to<WriteOp>(peer, nullptr), data));
}

template <typename Answer>
constexpr fi_ops_rma stub_ops(Answer answer) {
  return {
      .size = sizeof(fi_ops_rma),
      .read = answer,
      .readv = answer,
      .readmsg = answer,
      .write = answer,
      .writev = answer,
      .writemsg = answer,
      .inject = answer,
      .writedata = answer,
      .injectdata = answer,
  };
}

}  // namespace

constinit fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = readv,
    .readmsg = readmsg,
    .write = write,
    .writev = writev,
    .writemsg = writemsg,
    .inject = inject,
    .writedata = writedata,
    .injectdata = injectdata,
};
constinit fi_ops_rma rma_ops_disabled = stub_ops(kEopbadstate);
constinit fi_ops_rma rma_ops_unsupported = stub_ops(kEnosys);

}  // namespace cluster::api
