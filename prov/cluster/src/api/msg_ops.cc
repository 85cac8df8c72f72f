// Untagged messages (fi_msg); they are matched apart from tagged ones.
#include "api/endpoint.h"
#include "api/iovec_spans.h"
#include "api/ops_tables.h"
#include "api/recvmsg.h"

namespace cluster::api {
namespace {

using protocol::RecvOp;
using protocol::SendOp;

ssize_t recv(fid_ep* handle, void* buffer, std::size_t size, void*, fi_addr_t from, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const EpOptions& options = endpoint.options();
  const Bytes bytes = as_bytes(buffer, size);
  return endpoint.receive({.slices = {&bytes, 1},
                           .from = options.source(from),
                           .context = context,
                           .report = options.report_receives(),
                           .min_multi_recv = options.default_min_multi_recv()});
}

ssize_t recvv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t from,
              void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const EpOptions& options = endpoint.options();
  IovecSpans<Bytes> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  if (options.default_min_multi_recv() != 0 && count != 1) return -FI_EINVAL;
  return endpoint.receive({.slices = buffers.spans(),
                           .from = options.source(from),
                           .context = context,
                           .report = options.report_receives(),
                           .min_multi_recv = options.default_min_multi_recv()});
}

ssize_t recvmsg(fid_ep* handle, const fi_msg* message, std::uint64_t flags) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return receive_message(endpoint, message->msg_iov, message->iov_count, flags,
                         {.from = endpoint.options().source(message->addr), .context = message->context});
}

ssize_t send(fid_ep* handle, const void* buffer, std::size_t size, void*, fi_addr_t to,
             void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  SendOp op{.slices = {&bytes, 1}, .length = size, .to = to, .context = context};
  return endpoint.send(op, endpoint.options().tx_flags());
}

ssize_t sendv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t to,
              void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<ConstBytes> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  SendOp op{.slices = buffers.spans(), .length = buffers.length(), .to = to, .context = context};
  return endpoint.send(op, endpoint.options().tx_flags());
}

/// The flags of the call replace the endpoint's.
ssize_t sendmsg(fid_ep* handle, const fi_msg* message, std::uint64_t flags) noexcept {
  if (flags & kTxFlagsUnsupported) [[unlikely]]
    return -FI_EBADFLAGS;
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<ConstBytes> buffers;
  if (!buffers.read(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  const TxFlags tx_flags = endpoint.options().tx_flags(flags);
  SendOp op{.slices = buffers.spans(),
            .length = buffers.length(),
            .to = message->addr,
            .context = message->context,
            .data = message->data,
            .has_data = tx_flags.has_data};
  return endpoint.send(op, tx_flags);
}

/// No completion reports the success of an injected message; a failure is reported.
ssize_t inject(fid_ep* handle, const void* buffer, std::size_t size, fi_addr_t to) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  SendOp op{.slices = {&bytes, 1}, .length = size, .to = to};
  return endpoint.send(op, endpoint.options().inject_flags());
}

ssize_t senddata(fid_ep* handle, const void* buffer, std::size_t size, void*, std::uint64_t data,
                 fi_addr_t to, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  SendOp op{
      .slices = {&bytes, 1}, .length = size, .to = to, .context = context, .data = data, .has_data = true};
  return endpoint.send(op, endpoint.options().tx_flags());
}

ssize_t injectdata(fid_ep* handle, const void* buffer, std::size_t size, std::uint64_t data,
                   fi_addr_t to) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  SendOp op{.slices = {&bytes, 1}, .length = size, .to = to, .data = data, .has_data = true};
  return endpoint.send(op, endpoint.options().inject_flags());
}

template <typename Answer>
constexpr fi_ops_msg stub_ops(Answer answer) {
  return {
      .size = sizeof(fi_ops_msg),
      .recv = answer,
      .recvv = answer,
      .recvmsg = answer,
      .send = answer,
      .sendv = answer,
      .sendmsg = answer,
      .inject = answer,
      .senddata = answer,
      .injectdata = answer,
  };
}

}  // namespace

constinit fi_ops_msg msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = recv,
    .recvv = recvv,
    .recvmsg = recvmsg,
    .send = send,
    .sendv = sendv,
    .sendmsg = sendmsg,
    .inject = inject,
    .senddata = senddata,
    .injectdata = injectdata,
};
constinit fi_ops_msg msg_ops_disabled = stub_ops(kEopbadstate);
constinit fi_ops_msg msg_ops_unsupported = stub_ops(kEnosys);

}  // namespace cluster::api
