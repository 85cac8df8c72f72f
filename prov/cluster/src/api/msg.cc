// Untagged messages (fi_msg): every call is one order. They match apart from tagged ones.
#include "api/fold.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

ssize_t recv(fid_ep* endpoint, void* buffer, std::size_t size, void*, fi_addr_t from,
             void* context) noexcept {
  return receive_one(endpoint, as_bytes(buffer, size), {.from = from, .context = context});
}

ssize_t recvv(fid_ep* endpoint, const iovec* vector, void**, std::size_t count, fi_addr_t from,
              void* context) noexcept {
  return receive_vector(endpoint, vector, count, {.from = from, .context = context});
}

ssize_t recvmsg(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) noexcept {
  return receive_message(endpoint, message->msg_iov, message->iov_count, flags,
                         {.from = message->addr, .context = message->context});
}

ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t size, void*, fi_addr_t to,
             void* context) noexcept {
  return send_one(endpoint, as_bytes(buffer, size), {.to = to, .context = context});
}

ssize_t sendv(fid_ep* endpoint, const iovec* vector, void**, std::size_t count, fi_addr_t to,
              void* context) noexcept {
  return send_vector(endpoint, vector, count, {.to = to, .context = context});
}

ssize_t sendmsg(fid_ep* endpoint, const fi_msg* message, std::uint64_t flags) noexcept {
  return send_message(endpoint, message->msg_iov, message->iov_count, flags,
                      {.to = message->addr, .context = message->context, .data = message->data});
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t size, fi_addr_t to) noexcept {
  return inject_one(endpoint, as_bytes(buffer, size), {.to = to});
}

ssize_t senddata(fid_ep* endpoint, const void* buffer, std::size_t size, void*, std::uint64_t data,
                 fi_addr_t to, void* context) noexcept {
  return send_one(endpoint, as_bytes(buffer, size),
                  {.to = to, .context = context, .data = data, .has_data = true});
}

ssize_t injectdata(fid_ep* endpoint, const void* buffer, std::size_t size, std::uint64_t data,
                   fi_addr_t to) noexcept {
  return inject_one(endpoint, as_bytes(buffer, size), {.to = to, .data = data, .has_data = true});
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
