// The shared part of all ways to send and to receive. Callers fill in what their variant knows
// (whom, tag, data, context); these add the buffers and what the endpoint or the flags say.
#pragma once

#include <array>

#include "api/endpoint.h"

namespace cluster::api {

/// The slices of an iovec as the rooms below know them.
template <typename Slice>
struct Slices {
  union {
    std::array<Slice, protocol::kIovMax> parts;  ///< only those that are used are ever written
  };
  std::size_t length = 0;

  Slices() {}

  /// False if there are too many.
  bool take(const iovec* vector, std::size_t count) {
    if (count > parts.size() || (count > 0 && vector == nullptr)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      parts[i] = as_bytes(vector[i].iov_base, vector[i].iov_len);
      length += vector[i].iov_len;
    }
    return true;
  }
};

inline ssize_t send_as(Endpoint& endpoint, const TxFlags& manner, protocol::SendOp& order) noexcept {
  order.completion_level = manner.completion_level;
  order.report = manner.report;
  order.inject = manner.inject;
  order.more = manner.more;
  order.fence = manner.fence;
  return endpoint.send(order);
}

/// fi_send, fi_tsend, fi_senddata, fi_tsenddata.
inline ssize_t send_one(fid_ep* handle, ConstBytes bytes, protocol::SendOp order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.slices = {&bytes, 1};
  order.length = bytes.size();
  return send_as(endpoint, endpoint.tx_flags(), order);
}

/// fi_inject and the like: the buffer is free on return, and success is not told; failure is.
inline ssize_t inject_one(fid_ep* handle, ConstBytes bytes, protocol::SendOp order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.slices = {&bytes, 1};
  order.length = bytes.size();
  order.completion_level = endpoint.inject_promise();
  order.report = false;
  order.inject = true;
  return endpoint.send(order);
}

inline ssize_t send_slices(Endpoint& endpoint, const TxFlags& manner, const iovec* vector, std::size_t count,
                           protocol::SendOp& order) noexcept {
  Slices<ConstBytes> slices;
  if (!slices.take(vector, count)) return -FI_EINVAL;
  order.slices = {slices.parts.data(), count};
  order.length = slices.length;
  return send_as(endpoint, manner, order);
}

/// fi_sendv, fi_tsendv.
inline ssize_t send_vector(fid_ep* handle, const iovec* vector, std::size_t count,
                           protocol::SendOp order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  return send_slices(endpoint, endpoint.tx_flags(), vector, count, order);
}

/// fi_sendmsg, fi_tsendmsg: the flags of the call take the place of the endpoint's.
inline ssize_t send_message(fid_ep* handle, const iovec* vector, std::size_t count, std::uint64_t flags,
                            protocol::SendOp order) noexcept {
  if (flags & kTxFlagsUnsupported) [[unlikely]]
    return -FI_EBADFLAGS;
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  const TxFlags manner = endpoint.tx_flags(flags);
  order.has_data = manner.has_data;
  return send_slices(endpoint, manner, vector, count, order);
}

/// fi_recv, fi_trecv. `order.from` comes in as the application's address.
inline ssize_t receive_one(fid_ep* handle, Bytes bytes, protocol::RecvOp order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.slices = {&bytes, 1};
  order.from = endpoint.sender(order.from);
  order.report = endpoint.report_receives();
  if (!order.tagged) order.min_multi_recv = endpoint.default_multi_receive_min();
  return endpoint.receive(order);
}

inline ssize_t receive_slices(Endpoint& endpoint, const iovec* vector, std::size_t count,
                              protocol::RecvOp& order) noexcept {
  Slices<Bytes> slices;
  if (!slices.take(vector, count) || (order.min_multi_recv != 0 && count != 1)) return -FI_EINVAL;
  order.slices = {slices.parts.data(), count};
  return endpoint.receive(order);
}

/// fi_recvv, fi_trecvv.
inline ssize_t receive_vector(fid_ep* handle, const iovec* vector, std::size_t count,
                              protocol::RecvOp order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.from = endpoint.sender(order.from);
  order.report = endpoint.report_receives();
  if (!order.tagged) order.min_multi_recv = endpoint.default_multi_receive_min();
  return receive_slices(endpoint, vector, count, order);
}

/// FI_PEEK, FI_CLAIM, FI_DISCARD: looks instead of receiving, or takes what a look has set aside.
/// False if the flags make no sense together.
bool apply_peek_flags(std::uint64_t flags, protocol::RecvOp& order);

/// fi_recvmsg, fi_trecvmsg.
inline ssize_t receive_message(fid_ep* handle, const iovec* vector, std::size_t count, std::uint64_t flags,
                               protocol::RecvOp order) noexcept {
  if (flags & kRxFlagsUnsupported) [[unlikely]]
    return -FI_EBADFLAGS;
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.from = endpoint.sender(order.from);
  order.report = endpoint.report_receive(flags);
  order.min_multi_recv = endpoint.min_multi_recv(flags);
  if (order.tagged && order.min_multi_recv != 0) return -FI_EBADFLAGS;
  if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) [[unlikely]] {
    if (!apply_peek_flags(flags, order)) return -FI_EINVAL;
    if (order.peek != protocol::Peek::none || order.discard_claimed) return endpoint.receive(order);
  }
  return receive_slices(endpoint, vector, count, order);
}

}  // namespace cluster::api
