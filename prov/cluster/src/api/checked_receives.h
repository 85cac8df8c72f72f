// The receives of endpoints whose receives have no fast lane, because each call is checked first
// (EpOptions::receives_need_checks). With FI_EXACT_DIRECTED_RECV a receive must name its source. With
// FI_TAGGED_MULTI_RECV the operation flag FI_MULTI_RECV also applies to tagged receives. Each call becomes a
// call of recvmsg() of the ordinary tables.
#pragma once

#include <type_traits>

#include "api/endpoint.h"
#include "api/ops_tables.h"

namespace cluster::api::checked {

inline fi_msg message_of(const iovec* vector, std::size_t count, fi_addr_t from, void* context) {
  return {vector, nullptr, count, from, context, 0};
}
inline fi_msg_tagged message_of(const iovec* vector, std::size_t count, fi_addr_t from, std::uint64_t tag,
                                std::uint64_t ignore, void* context) {
  return {vector, nullptr, count, from, tag, ignore, context, 0};
}

/// A claim (FI_CLAIM without FI_PEEK) needs no source, because its context identifies the message.
template <typename Message>
ssize_t recvmsg(fid_ep* handle, const Message* message, std::uint64_t flags) noexcept {
  constexpr bool kTagged = std::is_same_v<Message, fi_msg_tagged>;
  const bool claim = (flags & (FI_CLAIM | FI_PEEK)) == FI_CLAIM;
  if (message->addr == FI_ADDR_UNSPEC && !claim && endpoint_of(handle).options().wants_exact_source(kTagged))
    return -FI_EINVAL;
  if constexpr (kTagged) {
    return tagged_ops.recvmsg(handle, message, flags);
  } else {
    return msg_ops.recvmsg(handle, message, flags);
  }
}

template <typename... Tag>
ssize_t recvv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t from, Tag... tag,
              void* context) noexcept {
  const auto message = message_of(vector, count, from, tag..., context);
  return recvmsg(handle, &message, endpoint_of(handle).options().rx_op_flags());
}

template <typename... Tag>
ssize_t recv(fid_ep* handle, void* buffer, std::size_t size, void*, fi_addr_t from, Tag... tag,
             void* context) noexcept {
  const iovec vector{buffer, size};
  return recvv<Tag...>(handle, &vector, nullptr, 1, from, tag..., context);
}

/// Puts the receives above into the table. `Tag...`: as in message_ops.cc.
template <typename... Tag, typename Table>
void put_into(Table& ops) {
  ops.recv = recv<Tag...>;
  ops.recvv = recvv<Tag...>;
  ops.recvmsg = recvmsg;
}

}  // namespace cluster::api::checked
