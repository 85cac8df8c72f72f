#include "api/shared_contexts.h"

#include <rdma/fi_tagged.h>

#include <algorithm>

#include "api/ep_options.h"
#include "api/newer_capabilities.h"
#include "api/ops_tables.h"
#include "base/end_of_memory.h"

namespace cluster::api {
namespace {

using protocol::RecvOp;

/// Flags that a receive of a shared context does not support.
constexpr std::uint64_t kFlagsOfEndpoints =
    kRxFlagsUnsupported | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV;

constexpr RecvOp untagged(fi_addr_t from, void* context) { return {.from = from, .context = context}; }
constexpr RecvOp with_tag(fi_addr_t from, std::uint64_t tag, std::uint64_t ignore, void* context) {
  return {.from = from, .context = context, .tag = tag, .ignore = ignore, .tagged = true};
}

ssize_t receive_into(fid_ep* handle, const void* buffer, std::size_t size, RecvOp op) noexcept {
  SharedRx& shared = object_of<SharedRx>(handle);
  const Bytes bytes = as_bytes(const_cast<void*>(buffer), size);
  op.slices = {&bytes, 1};
  op.report = shared.reports_receives();
  return guarded([&] { return shared.receive(op); });
}

ssize_t receive_into(fid_ep* handle, const iovec* vector, std::size_t count, RecvOp op,
                     bool report) noexcept {
  IovecSpans<Bytes> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  op.slices = buffers.spans();
  op.report = report;
  return guarded([&] { return object_of<SharedRx>(handle).receive(op); });
}

ssize_t recv(fid_ep* handle, void* buffer, std::size_t size, void*, fi_addr_t from, void* context) noexcept {
  return receive_into(handle, buffer, size, untagged(from, context));
}

ssize_t recvv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t from,
              void* context) noexcept {
  return receive_into(handle, vector, count, untagged(from, context),
                      object_of<SharedRx>(handle).reports_receives());
}

ssize_t recvmsg(fid_ep* handle, const fi_msg* message, std::uint64_t flags) noexcept {
  if (flags & kFlagsOfEndpoints) return -FI_EOPNOTSUPP;
  return receive_into(handle, message->msg_iov, message->iov_count, untagged(message->addr, message->context),
                      flags & FI_COMPLETION);
}

ssize_t trecv(fid_ep* handle, void* buffer, std::size_t size, void*, fi_addr_t from, std::uint64_t tag,
              std::uint64_t ignore, void* context) noexcept {
  return receive_into(handle, buffer, size, with_tag(from, tag, ignore, context));
}

ssize_t trecvv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t from,
               std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  return receive_into(handle, vector, count, with_tag(from, tag, ignore, context),
                      object_of<SharedRx>(handle).reports_receives());
}

ssize_t trecvmsg(fid_ep* handle, const fi_msg_tagged* message, std::uint64_t flags) noexcept {
  if (flags & kFlagsOfEndpoints) return -FI_EOPNOTSUPP;
  return receive_into(handle, message->msg_iov, message->iov_count,
                      with_tag(message->addr, message->tag, message->ignore, message->context),
                      flags & FI_COMPLETION);
}

constinit fi_ops_msg shared_msg_ops = [] {
  auto ops = stub_ops<fi_ops_msg>(kEnosys);
  ops.recv = recv;
  ops.recvv = recvv;
  ops.recvmsg = recvmsg;
  return ops;
}();

constinit fi_ops_tagged shared_tagged_ops = [] {
  auto ops = stub_ops<fi_ops_tagged>(kEnosys);
  ops.recv = trecv;
  ops.recvv = trecvv;
  ops.recvmsg = trecvmsg;
  return ops;
}();

constinit fi_ops_ep shared_ep_ops = [] {
  auto ops = stub_ops<fi_ops_ep>(kEnosys);
  ops.cancel = Method<&SharedRx::cancel>::entry;
  return ops;
}();

constinit fi_ops shared_rx_fid_ops =
    fid_ops({.close = close_object<SharedRx>, .control = Method<&SharedRx::control>::entry});
constinit fi_ops shared_tx_fid_ops = fid_ops({.close = close_object<SharedTx>});

}  // namespace

SharedTx::SharedTx(Domain& domain, void* context)
    : fid_stx{{FI_CLASS_STX_CTX, context, &shared_tx_fid_ops}, &unsupported_ops<fi_ops_ep>},
      domain_(domain) {}

int SharedTx::open(Domain& domain, const fi_tx_attr* attributes, fid_stx** handle, void* context) {
  if (attributes_at(attributes).op_flags & kTxFlagsUnsupported) return -FI_EBADFLAGS;
  *handle = new SharedTx(domain, context);
  return 0;
}

SharedRx::SharedRx(Domain& domain, const fi_rx_attr& attributes, void* context)
    : fid_ep{{FI_CLASS_SRX_CTX, context, &shared_rx_fid_ops},
             &shared_ep_ops,
             &unsupported_ops<fi_ops_cm>,
             &shared_msg_ops,
             &unsupported_ops<fi_ops_rma>,
             &shared_tagged_ops,
             &unsupported_ops<fi_ops_atomic>,
             &unsupported_ops<fi_ops_collective>},
      domain_(domain),
      caps_(attributes.caps),
      reports_(attributes.op_flags & FI_COMPLETION) {}

int SharedRx::open(Domain& domain, const fi_rx_attr* attributes, fid_ep** handle, void* context) {
  if (attributes_at(attributes).op_flags & kFlagsOfEndpoints) return -FI_EBADFLAGS;
  *handle = new SharedRx(domain, attributes_at(attributes), context);
  return 0;
}

void SharedRx::add_engine(engine::Engine& engine, protocol::CompletionQueue* queue,
                          protocol::Counter* counter) {
  const std::lock_guard lock(mutex_);
  takers_.push_back({&engine, queue, counter});
}

void SharedRx::remove_engine(engine::Engine& engine) {
  const std::lock_guard lock(mutex_);
  std::erase_if(takers_, [&](const Taker& taker) { return taker.engine == &engine; });
}

/// If an engine lacks the memory to deliver a stored message, this function removes the receive again, and
/// fails.
ssize_t SharedRx::receive(RecvOp op) {
  if (demands_source(caps_, op.tagged) && op.from == protocol::kAddrUnspec) return -FI_EINVAL;
  if (!directs(caps_, op.tagged)) op.from = protocol::kAddrUnspec;
  const protocol::SharedReceives::Receive receive = receives_.add(op);
  const std::lock_guard lock(mutex_);
  const auto show = [&] {
    for (const Taker& taker : takers_) {
      if (taker.engine->take_shared(receive)) return;
    }
  };
  return !enough_memory_for(show) && receives_.claim(receive) ? -FI_ENOMEM : 0;
}

ssize_t SharedRx::cancel(void* context) {
  const std::optional<protocol::SharedReceives::Receive> receive = receives_.take_by_context(context);
  if (!receive) return 0;  // a message has taken the receive, and the completion follows
  const std::lock_guard lock(mutex_);
  for (const Taker& taker : takers_) {
    if (taker.queue == nullptr && taker.counter == nullptr) continue;
    protocol::Completion canceled;
    canceled.kind = protocol::Completion::Kind::receive;
    canceled.status = Status::canceled;
    canceled.context = receive->context;
    canceled.tagged = receive->tagged;
    if (taker.queue != nullptr) taker.queue->push(canceled);
    if (taker.counter != nullptr) taker.counter->count(Status::canceled);
    break;
  }
  return 0;
}

int SharedRx::control(int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

}  // namespace cluster::api
