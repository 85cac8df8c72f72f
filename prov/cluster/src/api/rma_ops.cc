// The ops table of fi_rma: remote reads and writes.
#include <array>
#include <type_traits>

#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "api/trigger_or_refuse.h"

namespace cluster::api {
namespace {

using protocol::ReadOp;
using protocol::RmaIov;
using protocol::ShortRead;
using protocol::ShortWrite;
using protocol::WriteOp;

// In the following functions `op` is a ReadOp or a WriteOp that has no buffers and no remote ranges yet.

template <bool deferred = false, typename Op>
ssize_t access(Endpoint& endpoint, const TxFlags& flags, std::span<const typename Op::Buffer> buffers,
               std::span<const RmaIov> remote, std::size_t length, Op& op) noexcept {
  op.slices = buffers;
  op.remote = remote;
  op.length = length;
  return deferred ? endpoint.access_deferred(op, flags) : endpoint.access(op, flags);
}

/// If `inject` is true, the success of the operation gets no completion, but a failure does.
template <typename Op>
ssize_t access_buffer(fid_ep* handle, typename Op::Buffer bytes, void* descriptor, std::uint64_t address,
                      std::uint64_t key, Op op, bool inject = false) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const TxFlags& flags = inject ? endpoint.options().inject_flags() : endpoint.options().tx_flags();
  const RmaIov range{address, key, bytes.size()};
  if (descriptor != nullptr) op.handles = &descriptor;
  return access(endpoint, flags, {&bytes, 1}, {&range, 1}, range.length, op);
}

template <typename Op>
ssize_t access_vector(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count,
                      std::uint64_t address, std::uint64_t key, Op op) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  IovecSpans<typename Op::Buffer> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  const RmaIov range{address, key, buffers.length()};
  op.handles = descriptors;
  return access(endpoint, endpoint.options().tx_flags(), buffers.spans(), {&range, 1}, range.length, op);
}

/// The flags of the call replace the endpoint's operation flags.
template <typename Op, bool deferred = false>
ssize_t access_message(fid_ep* handle, const fi_msg_rma* message, std::uint64_t flags) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  if (flags & kTxFlagsUnsupported) [[unlikely]] {
    constexpr auto kKind = std::is_same_v<Op, WriteOp> ? CallCopy::Kind::write : CallCopy::Kind::read;
    return trigger_or_refuse(endpoint, flags & kTxFlagsUnsupported, kKind, *message, flags);
  }
  const TxFlags tx_flags = endpoint.options().tx_flags(flags);
  IovecSpans<typename Op::Buffer> buffers;
  if (!buffers.read(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  std::array<RmaIov, protocol::kRmaIovMax> ranges;
  const std::span wanted(message->rma_iov, message->rma_iov_count);
  if (wanted.empty() || wanted.size() > ranges.size() || wanted.data() == nullptr) return -FI_EINVAL;
  std::size_t length = 0;
  for (std::size_t i = 0; i < wanted.size(); length += wanted[i++].len)
    ranges[i] = {wanted[i].addr, wanted[i].key, wanted[i].len};
  if (buffers.length() != length) return -FI_EINVAL;
  Op op{{.to = message->addr, .context = message->context, .handles = message->desc}};
  if constexpr (std::is_same_v<Op, WriteOp>) {
    op.data = message->data;
    op.has_data = tx_flags.has_data;
  }
  return access<deferred>(endpoint, tx_flags, buffers.spans(), {ranges.data(), wanted.size()}, length, op);
}

// Each of rma_read, rma_write and rma_inject only chooses between two functions with the same arguments, so
// it needs no stack. The attribute gnu::flatten inlines the access lane.

WriteOp write_op(fi_addr_t peer, void* context) { return {{.to = peer, .context = context}}; }

WriteOp write_op(fi_addr_t peer, void* context, std::uint64_t data) {
  return {{.to = peer, .context = context}, {}, data, true};
}

[[gnu::noinline]] ssize_t read_generally(fid_ep* handle, void* buffer, std::size_t size, void* descriptor,
                                         fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                                         void* context) noexcept {
  return access_buffer(handle, as_bytes(buffer, size), descriptor, address, key,
                       ReadOp{{.to = peer, .context = context}});
}

[[gnu::noinline, gnu::flatten]] ssize_t read_by_lane(fid_ep* handle, void* buffer, std::size_t size,
                                                     void* descriptor, fi_addr_t peer, std::uint64_t address,
                                                     std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const bool report = endpoint.options().tx_flags().report;
  const ShortRead op{address, key, size, static_cast<std::byte*>(buffer), context, report};
  if (endpoint.access_short(peer, op)) [[likely]]
    return 0;
  return read_generally(handle, buffer, size, descriptor, peer, address, key, context);
}

ssize_t rma_read(fid_ep* handle, void* buffer, std::size_t size, void* descriptor, fi_addr_t peer,
                 std::uint64_t address, std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return endpoint.tries_access_lane(size, endpoint.options().fast_read_max())
             ? read_by_lane(handle, buffer, size, descriptor, peer, address, key, context)
             : read_generally(handle, buffer, size, descriptor, peer, address, key, context);
}

ssize_t readv(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count, fi_addr_t peer,
              std::uint64_t address, std::uint64_t key, void* context) noexcept {
  return access_vector(handle, vector, descriptors, count, address, key,
                       ReadOp{{.to = peer, .context = context}});
}

[[gnu::noinline]] ssize_t write_generally(fid_ep* handle, const void* buffer, std::size_t size,
                                          void* descriptor, fi_addr_t peer, std::uint64_t address,
                                          std::uint64_t key, void* context) noexcept {
  return access_buffer(handle, as_bytes(buffer, size), descriptor, address, key, write_op(peer, context));
}

[[gnu::noinline, gnu::flatten]] ssize_t write_by_lane(fid_ep* handle, const void* buffer, std::size_t size,
                                                      void* descriptor, fi_addr_t peer, std::uint64_t address,
                                                      std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const bool report = endpoint.options().tx_flags().report;
  const ShortWrite op{address, key, size, static_cast<const std::byte*>(buffer), context, report};
  if (endpoint.access_short(peer, op)) [[likely]]
    return 0;
  return write_generally(handle, buffer, size, descriptor, peer, address, key, context);
}

ssize_t rma_write(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor, fi_addr_t peer,
                  std::uint64_t address, std::uint64_t key, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return endpoint.tries_access_lane(size, endpoint.options().fast_write_max())
             ? write_by_lane(handle, buffer, size, descriptor, peer, address, key, context)
             : write_generally(handle, buffer, size, descriptor, peer, address, key, context);
}

ssize_t rma_writev(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key, void* context) noexcept {
  return access_vector(handle, vector, descriptors, count, address, key, write_op(peer, context));
}

[[gnu::noinline]] ssize_t inject_generally(fid_ep* handle, const void* buffer, std::size_t size,
                                           fi_addr_t peer, std::uint64_t address,
                                           std::uint64_t key) noexcept {
  return access_buffer(handle, as_bytes(buffer, size), nullptr, address, key, write_op(peer, nullptr), true);
}

[[gnu::noinline, gnu::flatten]] ssize_t inject_by_lane(fid_ep* handle, const void* buffer, std::size_t size,
                                                       fi_addr_t peer, std::uint64_t address,
                                                       std::uint64_t key) noexcept {
  const ShortWrite op{address, key, size, static_cast<const std::byte*>(buffer), nullptr, false};
  if (endpoint_of(handle).access_short(peer, op)) [[likely]]
    return 0;
  return inject_generally(handle, buffer, size, peer, address, key);
}

ssize_t rma_inject(fid_ep* handle, const void* buffer, std::size_t size, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return endpoint.tries_access_lane(size, endpoint.options().fast_inject_write_max())
             ? inject_by_lane(handle, buffer, size, peer, address, key)
             : inject_generally(handle, buffer, size, peer, address, key);
}

ssize_t writedata(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor, std::uint64_t data,
                  fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) noexcept {
  return access_buffer(handle, as_bytes(buffer, size), descriptor, address, key,
                       write_op(peer, context, data));
}

ssize_t injectdata(fid_ep* handle, const void* buffer, std::size_t size, std::uint64_t data, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key) noexcept {
  return access_buffer(handle, as_bytes(buffer, size), nullptr, address, key, write_op(peer, nullptr, data),
                       true);
}

}  // namespace

constinit fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = rma_read,
    .readv = readv,
    .readmsg = access_message<ReadOp>,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = access_message<WriteOp>,
    .inject = rma_inject,
    .writedata = writedata,
    .injectdata = injectdata,
};

constinit fi_ops_rma deferred_rma_ops = [] {
  auto ops = stub_ops<fi_ops_rma>(kEnosys);
  ops.readmsg = access_message<ReadOp, true>;
  ops.writemsg = access_message<WriteOp, true>;
  return ops;
}();

}  // namespace cluster::api
