// Tagged messages (fi_tagged): every call is one order.
#include "api/fold.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

ssize_t recv(fid_ep* endpoint, void* buffer, std::size_t size, void*, fi_addr_t from, std::uint64_t tag,
             std::uint64_t ignore, void* context) noexcept {
  return receive_one(endpoint, as_bytes(buffer, size),
                     {.from = from, .context = context, .tag = tag, .ignore = ignore, .tagged = true});
}

ssize_t recvv(fid_ep* endpoint, const iovec* vector, void**, std::size_t count, fi_addr_t from,
              std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  return receive_vector(endpoint, vector, count,
                        {.from = from, .context = context, .tag = tag, .ignore = ignore, .tagged = true});
}

ssize_t recvmsg(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) noexcept {
  return receive_message(endpoint, message->msg_iov, message->iov_count, flags,
                         {.from = message->addr,
                          .context = message->context,
                          .tag = message->tag,
                          .ignore = message->ignore,
                          .tagged = true});
}

ssize_t send(fid_ep* endpoint, const void* buffer, std::size_t size, void*, fi_addr_t to, std::uint64_t tag,
             void* context) noexcept {
  return send_one(endpoint, as_bytes(buffer, size),
                  {.to = to, .context = context, .tag = tag, .tagged = true});
}

ssize_t sendv(fid_ep* endpoint, const iovec* vector, void**, std::size_t count, fi_addr_t to,
              std::uint64_t tag, void* context) noexcept {
  return send_vector(endpoint, vector, count, {.to = to, .context = context, .tag = tag, .tagged = true});
}

ssize_t sendmsg(fid_ep* endpoint, const fi_msg_tagged* message, std::uint64_t flags) noexcept {
  return send_message(endpoint, message->msg_iov, message->iov_count, flags,
                      {.to = message->addr,
                       .context = message->context,
                       .tag = message->tag,
                       .data = message->data,
                       .tagged = true});
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t size, fi_addr_t to,
               std::uint64_t tag) noexcept {
  return inject_one(endpoint, as_bytes(buffer, size), {.to = to, .tag = tag, .tagged = true});
}

ssize_t senddata(fid_ep* endpoint, const void* buffer, std::size_t size, void*, std::uint64_t data,
                 fi_addr_t to, std::uint64_t tag, void* context) noexcept {
  return send_one(endpoint, as_bytes(buffer, size),
                  {.to = to, .context = context, .tag = tag, .data = data, .tagged = true, .has_data = true});
}

ssize_t injectdata(fid_ep* endpoint, const void* buffer, std::size_t size, std::uint64_t data, fi_addr_t to,
                   std::uint64_t tag) noexcept {
  return inject_one(endpoint, as_bytes(buffer, size),
                    {.to = to, .tag = tag, .data = data, .tagged = true, .has_data = true});
}

template <typename Answer>
constexpr fi_ops_tagged stub_ops(Answer answer) {
  return {
      .size = sizeof(fi_ops_tagged),
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

constinit fi_ops_tagged tagged_ops = {
    .size = sizeof(fi_ops_tagged),
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
constinit fi_ops_tagged tagged_ops_disabled = stub_ops(kEopbadstate);
constinit fi_ops_tagged tagged_ops_unsupported = stub_ops(kEnosys);

}  // namespace cluster::api
