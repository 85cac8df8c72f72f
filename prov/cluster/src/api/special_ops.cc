#include "api/special_ops.h"

#include <type_traits>

#include "api/endpoint.h"

namespace cluster::api {
namespace by_message {
namespace {

// A call without flags becomes a call with a message structure, such as fi_sendmsg, and gets the endpoint's
// operation flags. `Tag...`: as in message_ops.cc.

fi_msg message_of(const iovec* vector, void** descriptors, std::size_t count, fi_addr_t peer, void* context,
                  std::uint64_t data = 0) {
  return {vector, descriptors, count, peer, context, data};
}
fi_msg_tagged message_of(const iovec* vector, void** descriptors, std::size_t count, fi_addr_t peer,
                         std::uint64_t tag, std::uint64_t ignore, void* context) {
  return {vector, descriptors, count, peer, tag, ignore, context, 0};
}
fi_msg_tagged message_of(const iovec* vector, void** descriptors, std::size_t count, fi_addr_t peer,
                         std::uint64_t tag, void* context) {
  return {vector, descriptors, count, peer, tag, 0, context, 0};
}

std::uint64_t tx_op_flags(fid_ep* handle) { return endpoint_of(handle).options().tx_op_flags(); }

ssize_t begin_send(fid_ep* handle, const fi_msg& message, std::uint64_t flags) {
  return msg_ops.sendmsg(handle, &message, flags);
}
ssize_t begin_send(fid_ep* handle, const fi_msg_tagged& message, std::uint64_t flags) {
  return tagged_ops.sendmsg(handle, &message, flags);
}

template <typename... Tag>
ssize_t sendv(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count, fi_addr_t to,
              Tag... tag, void* context) noexcept {
  return begin_send(handle, message_of(vector, descriptors, count, to, tag..., context), tx_op_flags(handle));
}

template <typename... Tag>
ssize_t send(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor, fi_addr_t to, Tag... tag,
             void* context) noexcept {
  const iovec vector{const_cast<void*>(buffer), size};
  return sendv<Tag...>(handle, &vector, &descriptor, 1, to, tag..., context);
}

template <typename... Tag>
ssize_t senddata(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor, std::uint64_t data,
                 fi_addr_t to, Tag... tag, void* context) noexcept {
  const iovec vector{const_cast<void*>(buffer), size};
  auto message = message_of(&vector, &descriptor, 1, to, tag..., context);
  message.data = data;
  return begin_send(handle, message, tx_op_flags(handle) | FI_REMOTE_CQ_DATA);
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
ssize_t recvv(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count, fi_addr_t from,
              Tag... tag, void* context) noexcept {
  const auto message = message_of(vector, descriptors, count, from, tag..., context);
  return recvmsg(handle, &message, endpoint_of(handle).options().rx_op_flags());
}

template <typename... Tag>
ssize_t recv(fid_ep* handle, void* buffer, std::size_t size, void* descriptor, fi_addr_t from, Tag... tag,
             void* context) noexcept {
  const iovec vector{buffer, size};
  return recvv<Tag...>(handle, &vector, &descriptor, 1, from, tag..., context);
}

// The context of a triggered operation contains its condition, and an injected message has no context. So an
// endpoint whose flags contain FI_TRIGGER cannot inject.

template <typename... Tag, typename Table>
void put_sends(Table& ops) {
  ops.send = send<Tag...>;
  ops.sendv = sendv<Tag...>;
  ops.senddata = senddata<Tag...>;
  ops.inject = kEnosys;
  ops.injectdata = kEnosys;
}

template <typename... Tag, typename Table>
void put_receives(Table& ops) {
  ops.recv = recv<Tag...>;
  ops.recvv = recvv<Tag...>;
  ops.recvmsg = recvmsg;
}

template <auto member>
ssize_t accessv(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count, fi_addr_t peer,
                std::uint64_t address, std::uint64_t key, void* context) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < count && vector != nullptr; ++i) length += vector[i].iov_len;
  const fi_rma_iov range{address, length, key};
  const fi_msg_rma message{vector, descriptors, count, peer, &range, 1, context, 0};
  return (rma_ops.*member)(handle, &message, tx_op_flags(handle));
}

template <auto member, typename Buffer>
ssize_t access(fid_ep* handle, Buffer* buffer, std::size_t size, void* descriptor, fi_addr_t peer,
               std::uint64_t address, std::uint64_t key, void* context) noexcept {
  const iovec vector{const_cast<void*>(static_cast<const void*>(buffer)), size};
  return accessv<member>(handle, &vector, &descriptor, 1, peer, address, key, context);
}

ssize_t writedata(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor, std::uint64_t data,
                  fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) noexcept {
  const iovec vector{const_cast<void*>(buffer), size};
  const fi_rma_iov range{address, size, key};
  const fi_msg_rma message{&vector, &descriptor, 1, peer, &range, 1, context, data};
  return rma_ops.writemsg(handle, &message, tx_op_flags(handle) | FI_REMOTE_CQ_DATA);
}

void put_accesses(fi_ops_rma& ops) {
  ops.read = access<&fi_ops_rma::readmsg, void>;
  ops.readv = accessv<&fi_ops_rma::readmsg>;
  ops.write = access<&fi_ops_rma::writemsg, const void>;
  ops.writev = accessv<&fi_ops_rma::writemsg>;
  ops.writedata = writedata;
  ops.inject = kEnosys;
  ops.injectdata = kEnosys;
}

}  // namespace
}  // namespace by_message

std::unique_ptr<SpecialOps> make_special_ops(const EpOptions& options) {
  const bool triggers_sends = options.tx_op_flags() & FI_TRIGGER;
  const bool triggers_receives = options.rx_op_flags() & FI_TRIGGER;
  const bool untagged = triggers_receives || options.receives_need_checks(false);
  const bool tagged = triggers_receives || options.receives_need_checks(true);
  if (!triggers_sends && !untagged && !tagged) return nullptr;
  auto ops = std::make_unique<SpecialOps>(SpecialOps{msg_ops, tagged_ops, rma_ops, atomic_ops});
  if (untagged) by_message::put_receives<>(ops->msg);
  if (tagged) by_message::put_receives<std::uint64_t, std::uint64_t>(ops->tagged);
  if (triggers_sends) {
    by_message::put_sends<>(ops->msg);
    by_message::put_sends<std::uint64_t>(ops->tagged);
    by_message::put_accesses(ops->rma);
    ops->atomic.inject = kEnosys;
  }
  return ops;
}

}  // namespace cluster::api
