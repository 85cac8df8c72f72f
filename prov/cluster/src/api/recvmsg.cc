#include "api/recvmsg.h"

#include "api/iovec_spans.h"

namespace cluster::api {
namespace {

constexpr std::uint64_t kPeekFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;

/// False if the flags contradict each other.
bool apply_peek_flags(std::uint64_t flags, protocol::RecvOp& op) {
  const bool claim = flags & FI_CLAIM;
  const bool discard = flags & FI_DISCARD;
  if (flags & FI_PEEK) {
    if (claim && discard) return false;
    op.peek = claim ? protocol::Peek::claim : discard ? protocol::Peek::discard : protocol::Peek::look;
    op.report = true;  // the completion is the only result of a peek
    return true;
  }
  if (!claim || op.min_multi_recv != 0) return false;
  op.recv_claimed = !discard;
  op.discard_claimed = discard;
  op.from = protocol::kAddrUnspec;  // the context identifies the message
  return true;
}

}  // namespace

ssize_t receive_message(Endpoint& endpoint, const iovec* vector, std::size_t count, std::uint64_t flags,
                        protocol::RecvOp op) noexcept {
  if (flags & kRxFlagsUnsupported) return -FI_EBADFLAGS;
  op.report = endpoint.options().report_receive(flags);
  op.min_multi_recv = endpoint.options().min_multi_recv(flags);
  if (op.tagged && op.min_multi_recv != 0) return -FI_EBADFLAGS;
  if (flags & kPeekFlags) {
    if (!apply_peek_flags(flags, op)) return -FI_EINVAL;
    if (op.peek != protocol::Peek::none || op.discard_claimed) return endpoint.receive(op);
  }
  IovecSpans<Bytes> buffers;
  if (!buffers.read(vector, count) || (op.min_multi_recv != 0 && count != 1)) return -FI_EINVAL;
  op.slices = buffers.spans();
  return endpoint.receive(op);
}

}  // namespace cluster::api
