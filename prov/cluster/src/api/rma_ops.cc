// Remote reads and writes (fi_rma).
#include <array>

#include "api/endpoint.h"
#include "api/iovec_spans.h"
#include "api/ops_tables.h"

namespace cluster::api {
namespace {

using protocol::ReadOp;
using protocol::RmaIov;
using protocol::WriteOp;

/// The remote ranges of fi_readmsg and fi_writemsg.
struct RemoteRanges {
  std::array<RmaIov, protocol::kRmaIovMax> ranges;
  std::size_t count = 0;
  std::size_t length = 0;

  /// False if there are none, or more than kRmaIovMax.
  bool read(const fi_rma_iov* vector, std::size_t vector_count) {
    if (vector_count == 0 || vector_count > ranges.size() || vector == nullptr) return false;
    for (count = 0; count < vector_count; ++count) {
      ranges[count] = {vector[count].addr, vector[count].key, vector[count].len};
      length += vector[count].len;
    }
    return true;
  }
  std::span<const RmaIov> span() const { return {ranges.data(), count}; }
};

template <typename Op, typename Bytes>
Op make_op(std::span<const Bytes> local, std::span<const RmaIov> remote, std::size_t length, fi_addr_t peer,
           void* context) {
  Op op;
  op.slices = local;
  op.remote = remote;
  op.length = length;
  op.to = peer;
  op.context = context;
  return op;
}

ssize_t read(fid_ep* handle, void* buffer, std::size_t size, void*, fi_addr_t peer, std::uint64_t address,
             std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const Bytes bytes = as_bytes(buffer, size);
  const RmaIov range{address, key, size};
  auto op = make_op<ReadOp, Bytes>({&bytes, 1}, {&range, 1}, size, peer, context);
  return endpoint.read(op, endpoint.options().tx_flags());
}

ssize_t readv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t peer,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<Bytes> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  const RmaIov range{address, key, buffers.length()};
  auto op = make_op<ReadOp>(buffers.spans(), {&range, 1}, range.length, peer, context);
  return endpoint.read(op, endpoint.options().tx_flags());
}

ssize_t readmsg(fid_ep* handle, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  if (flags & kTxFlagsUnsupported) return -FI_EBADFLAGS;
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<Bytes> buffers;
  RemoteRanges remote;
  if (!buffers.read(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  if (!remote.read(message->rma_iov, message->rma_iov_count)) return -FI_EINVAL;
  if (buffers.length() != remote.length) return -FI_EINVAL;
  auto op = make_op<ReadOp>(buffers.spans(), remote.span(), remote.length, message->addr, message->context);
  return endpoint.read(op, endpoint.options().tx_flags(flags));
}

ssize_t write(fid_ep* handle, const void* buffer, std::size_t size, void*, fi_addr_t peer,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  const RmaIov range{address, key, size};
  auto op = make_op<WriteOp, ConstBytes>({&bytes, 1}, {&range, 1}, size, peer, context);
  return endpoint.write(op, endpoint.options().tx_flags());
}

ssize_t writev(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t peer,
               std::uint64_t address, std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<ConstBytes> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  const RmaIov range{address, key, buffers.length()};
  auto op = make_op<WriteOp>(buffers.spans(), {&range, 1}, range.length, peer, context);
  return endpoint.write(op, endpoint.options().tx_flags());
}

ssize_t writemsg(fid_ep* handle, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  if (flags & kTxFlagsUnsupported) return -FI_EBADFLAGS;
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<ConstBytes> buffers;
  RemoteRanges remote;
  if (!buffers.read(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  if (!remote.read(message->rma_iov, message->rma_iov_count)) return -FI_EINVAL;
  if (buffers.length() != remote.length) return -FI_EINVAL;
  const TxFlags tx_flags = endpoint.options().tx_flags(flags);
  auto op = make_op<WriteOp>(buffers.spans(), remote.span(), remote.length, message->addr, message->context);
  op.data = message->data;
  op.has_data = tx_flags.has_data;
  return endpoint.write(op, tx_flags);
}

/// No completion reports the success of an injected write; a failure is reported.
ssize_t inject(fid_ep* handle, const void* buffer, std::size_t size, fi_addr_t peer, std::uint64_t address,
               std::uint64_t key) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  const RmaIov range{address, key, size};
  auto op = make_op<WriteOp, ConstBytes>({&bytes, 1}, {&range, 1}, size, peer, nullptr);
  return endpoint.write(op, endpoint.options().inject_flags());
}

ssize_t writedata(fid_ep* handle, const void* buffer, std::size_t size, void*, std::uint64_t data,
                  fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  const RmaIov range{address, key, size};
  auto op = make_op<WriteOp, ConstBytes>({&bytes, 1}, {&range, 1}, size, peer, context);
  op.data = data;
  op.has_data = true;
  return endpoint.write(op, endpoint.options().tx_flags());
}

ssize_t injectdata(fid_ep* handle, const void* buffer, std::size_t size, std::uint64_t data, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const ConstBytes bytes = as_bytes(buffer, size);
  const RmaIov range{address, key, size};
  auto op = make_op<WriteOp, ConstBytes>({&bytes, 1}, {&range, 1}, size, peer, nullptr);
  op.data = data;
  op.has_data = true;
  return endpoint.write(op, endpoint.options().inject_flags());
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
