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
    std::array<Slice, protocol::kSlicesMax> parts;  ///< only those that are used are ever written
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

inline ssize_t send_as(Endpoint& endpoint, const SendManner& manner, protocol::SendOrder& order) noexcept {
  order.promise = manner.promise;
  order.report = manner.report;
  order.inject = manner.inject;
  order.more = manner.more;
  order.fence = manner.fence;
  return endpoint.send(order);
}

/// fi_send, fi_tsend, fi_senddata, fi_tsenddata.
inline ssize_t send_one(fid_ep* handle, ConstBytes bytes, protocol::SendOrder order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.slices = {&bytes, 1};
  order.length = bytes.size();
  return send_as(endpoint, endpoint.send_manner(), order);
}

/// fi_inject and the like: the buffer is free on return, and success is not told; failure is.
inline ssize_t inject_one(fid_ep* handle, ConstBytes bytes, protocol::SendOrder order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.slices = {&bytes, 1};
  order.length = bytes.size();
  order.promise = endpoint.inject_promise();
  order.report = false;
  order.inject = true;
  return endpoint.send(order);
}

inline ssize_t send_slices(Endpoint& endpoint, const SendManner& manner, const iovec* vector,
                           std::size_t count, protocol::SendOrder& order) noexcept {
  Slices<ConstBytes> slices;
  if (!slices.take(vector, count)) return -FI_EINVAL;
  order.slices = {slices.parts.data(), count};
  order.length = slices.length;
  return send_as(endpoint, manner, order);
}

/// fi_sendv, fi_tsendv.
inline ssize_t send_vector(fid_ep* handle, const iovec* vector, std::size_t count,
                           protocol::SendOrder order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  return send_slices(endpoint, endpoint.send_manner(), vector, count, order);
}

/// fi_sendmsg, fi_tsendmsg: the flags of the call take the place of the endpoint's.
inline ssize_t send_message(fid_ep* handle, const iovec* vector, std::size_t count, std::uint64_t flags,
                            protocol::SendOrder order) noexcept {
  if (flags & kSendFlagsRefused) [[unlikely]]
    return -FI_EBADFLAGS;
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  const SendManner manner = endpoint.send_manner(flags);
  order.has_data = manner.has_data;
  return send_slices(endpoint, manner, vector, count, order);
}

/// fi_recv, fi_trecv. `order.from` comes in as the application's address.
inline ssize_t receive_one(fid_ep* handle, Bytes bytes, protocol::ReceiveOrder order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.slices = {&bytes, 1};
  order.from = endpoint.sender(order.from);
  order.report = endpoint.report_receives();
  if (!order.tagged) order.least_room = endpoint.usual_least_room();
  return endpoint.receive(order);
}

inline ssize_t receive_slices(Endpoint& endpoint, const iovec* vector, std::size_t count,
                              protocol::ReceiveOrder& order) noexcept {
  Slices<Bytes> slices;
  if (!slices.take(vector, count) || (order.least_room != 0 && count != 1)) return -FI_EINVAL;
  order.slices = {slices.parts.data(), count};
  return endpoint.receive(order);
}

/// fi_recvv, fi_trecvv.
inline ssize_t receive_vector(fid_ep* handle, const iovec* vector, std::size_t count,
                              protocol::ReceiveOrder order) noexcept {
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.from = endpoint.sender(order.from);
  order.report = endpoint.report_receives();
  if (!order.tagged) order.least_room = endpoint.usual_least_room();
  return receive_slices(endpoint, vector, count, order);
}

/// FI_PEEK, FI_CLAIM, FI_DISCARD: looks instead of receiving, or takes what a look has set aside.
/// False if the flags make no sense together.
bool fold_look(std::uint64_t flags, protocol::ReceiveOrder& order);

/// fi_recvmsg, fi_trecvmsg.
inline ssize_t receive_message(fid_ep* handle, const iovec* vector, std::size_t count, std::uint64_t flags,
                               protocol::ReceiveOrder order) noexcept {
  if (flags & kReceiveFlagsRefused) [[unlikely]]
    return -FI_EBADFLAGS;
  Endpoint& endpoint = static_cast<Endpoint&>(*handle);
  order.from = endpoint.sender(order.from);
  order.report = endpoint.report_receive(flags);
  order.least_room = endpoint.least_room(flags);
  if (order.tagged && order.least_room != 0) return -FI_EBADFLAGS;
  if (flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) [[unlikely]] {
    if (!fold_look(flags, order)) return -FI_EINVAL;
    if (order.peek != protocol::Peek::none || order.drop_claimed) return endpoint.receive(order);
  }
  return receive_slices(endpoint, vector, count, order);
}

}  // namespace cluster::api
