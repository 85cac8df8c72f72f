// The ops tables of fi_msg and fi_tagged. Calls for untagged and for tagged messages differ only in the tag.
// So both tables use the same templates. `Tag...` is empty for fi_msg. For sends of fi_tagged it is one
// std::uint64_t, the tag. For receives of fi_tagged it is two: the tag and the bits to ignore.
#include <algorithm>
#include <type_traits>

#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "api/trigger_or_refuse.h"

namespace cluster::api {
namespace {

using protocol::RecvOp;
using protocol::SendOp;

constexpr std::uint64_t kPeekFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;

struct TagMatch {
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
};

/// Copies the tag if the message has one (fi_msg_tagged).
template <typename Op, typename Message>
void take_tag(const Message& message, Op& op) {
  if constexpr (std::is_same_v<Message, fi_msg_tagged>) {
    op.tag = message.tag;
    if constexpr (std::is_same_v<Op, RecvOp>) op.ignore = message.ignore;
    op.tagged = true;
  }
}

// --- Sending. An `op` that is passed to these functions has no buffers yet. The attribute gnu::flatten on
// send(), inject() and similar functions inlines the fast lane into them. ---

template <typename... Tag>
[[gnu::always_inline]] inline SendOp send_op(fi_addr_t to, void* context, Tag... tag) {
  return {.to = to, .context = context, .tag = TagMatch{tag...}.tag, .tagged = sizeof...(tag) > 0};
}

[[gnu::always_inline]] inline SendOp with_data(std::uint64_t data, SendOp op) {
  op.data = data;
  op.has_data = true;
  return op;
}

[[gnu::always_inline]] inline ssize_t send_buffer(Endpoint& endpoint, const TxFlags& flags,
                                                  const void* buffer, std::size_t size,
                                                  SendOp&& op) noexcept {
  const ConstBytes bytes = as_bytes(buffer, size);
  op.slices = {&bytes, 1};
  op.length = size;
  return endpoint.send(op, flags);
}

static_assert(protocol::kInjectMax <= engine::ShortSend::kBytesMax, "the length of an inject is not capped");

/// Builds the message for the fast lane. A `size` above kBytesMax is replaced by kBytesMax + 1, which fits
/// into 32 bits. No lane accepts a message of that length.
[[gnu::always_inline]] inline engine::ShortSend short_send(const void* buffer, std::size_t size,
                                                           const SendOp& op, bool report) {
  return {.header = {.length = static_cast<std::uint32_t>(std::min(size, engine::ShortSend::kBytesMax + 1)),
                     .tagged = op.tagged,
                     .has_data = op.has_data,
                     .tag = op.tag,
                     .data = op.data},
          .payload = buffer,
          .context = op.context,
          .report = report};
}

/// Tries to send a message by the frame lane, which leads only to peers on other nodes. If this returns
/// false, nothing was done. `fast_end`: only shorter messages may take the lane.
bool send_between_nodes(Endpoint& endpoint, const TxFlags& flags, std::size_t fast_end, const void* buffer,
                        std::size_t size, const SendOp& op, bool report) {
  if (size >= fast_end) return false;
  engine::ShortSend message = short_send(buffer, size, op, report);
  message.completion_level = flags.completion_level;
  return endpoint.engine()->take_frame_lane(op.to, message);
}

/// Sends a message that cannot take the fast lane. This is a separate function because it takes the address
/// of `descriptor`. In the caller, `descriptor` can therefore stay in a register.
[[gnu::noinline]] ssize_t send_generally(Endpoint& endpoint, const void* buffer, std::size_t size,
                                         void* descriptor, SendOp& op) noexcept {
  const EpOptions& options = endpoint.options();
  const TxFlags& flags = options.tx_flags();
  if (send_between_nodes(endpoint, flags, options.fast_send_end(), buffer, size, op, flags.report)) return 0;
  if (descriptor != nullptr) op.handles = &descriptor;
  return send_buffer(endpoint, endpoint.options().tx_flags(), buffer, size, std::move(op));
}

[[gnu::always_inline]] inline ssize_t send_buffer(fid_ep* handle, const void* buffer, std::size_t size,
                                                  void* descriptor, SendOp&& op) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const std::size_t fast_end = endpoint.options().fast_send_end();
  const bool report = endpoint.options().tx_flags().report;
  const ssize_t result = endpoint.send_short(op.to, short_send(buffer, size, op, report), fast_end);
  if (result != Endpoint::kGeneralPath) [[likely]]
    return result;
  return send_generally(endpoint, buffer, size, descriptor, op);
}

/// The success of an injected message gets no completion, but a failure does.
ssize_t inject_buffer(fid_ep* handle, const void* buffer, std::size_t size, SendOp&& op) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const std::size_t fast_end = endpoint.options().fast_inject_end();
  const ssize_t result = endpoint.send_short(op.to, short_send(buffer, size, op, false), fast_end);
  if (result != Endpoint::kGeneralPath) [[likely]]
    return result;
  const TxFlags& flags = endpoint.options().inject_flags();
  if (send_between_nodes(endpoint, flags, fast_end, buffer, size, op, false)) return 0;
  return send_buffer(endpoint, flags, buffer, size, std::move(op));
}

ssize_t send_vector(Endpoint& endpoint, const TxFlags& flags, const iovec* vector, void** descriptors,
                    std::size_t count, SendOp&& op) noexcept {
  IovecSpans<ConstBytes> buffers;
  if (!buffers.read(vector, count)) return -FI_EINVAL;
  op.slices = buffers.spans();
  op.handles = descriptors;
  op.length = buffers.length();
  return endpoint.send(op, flags);
}

template <typename... Tag>
[[gnu::flatten]] ssize_t send(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor,
                              fi_addr_t to, Tag... tag, void* context) noexcept {
  return send_buffer(handle, buffer, size, descriptor, send_op(to, context, tag...));
}

template <typename... Tag>
ssize_t sendv(fid_ep* handle, const iovec* vector, void** descriptors, std::size_t count, fi_addr_t to,
              Tag... tag, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  return send_vector(endpoint, endpoint.options().tx_flags(), vector, descriptors, count,
                     send_op(to, context, tag...));
}

/// The flags of the call replace the endpoint's operation flags.
template <typename Message, bool deferred = false>
ssize_t sendmsg(fid_ep* handle, const Message* message, std::uint64_t flags) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const std::uint64_t unsupported =
      flags & (endpoint.learns_of_matches(message->addr) ? kMessageFlagsUnsupported : kTxFlagsUnsupported);
  if (unsupported != 0) [[unlikely]]
    return trigger_or_refuse(endpoint, unsupported, CallCopy::Kind::send, *message, flags);
  const TxFlags tx_flags = endpoint.options().tx_flags(flags);
  SendOp op{.to = message->addr,
            .context = message->context,
            .data = message->data,
            .has_data = tx_flags.has_data,
            .deferred = deferred};
  take_tag(*message, op);
  return send_vector(endpoint, tx_flags, message->msg_iov, message->desc, message->iov_count, std::move(op));
}

template <typename... Tag>
[[gnu::flatten]] ssize_t inject(fid_ep* handle, const void* buffer, std::size_t size, fi_addr_t to,
                                Tag... tag) noexcept {
  return inject_buffer(handle, buffer, size, send_op(to, nullptr, tag...));
}

template <typename... Tag>
[[gnu::flatten]] ssize_t senddata(fid_ep* handle, const void* buffer, std::size_t size, void* descriptor,
                                  std::uint64_t data, fi_addr_t to, Tag... tag, void* context) noexcept {
  return send_buffer(handle, buffer, size, descriptor, with_data(data, send_op(to, context, tag...)));
}

template <typename... Tag>
[[gnu::flatten]] ssize_t injectdata(fid_ep* handle, const void* buffer, std::size_t size, std::uint64_t data,
                                    fi_addr_t to, Tag... tag) noexcept {
  return inject_buffer(handle, buffer, size, with_data(data, send_op(to, nullptr, tag...)));
}

// --- Receiving. ---

/// Builds a receive with the endpoint's operation flags and without buffers. For tagged receives, this
/// function ignores FI_MULTI_RECV. An endpoint with FI_TAGGED_MULTI_RECV and this flag uses the functions of
/// special_ops.h.
template <typename... Tag>
[[gnu::always_inline]] inline RecvOp recv_op(const EpOptions& options, fi_addr_t from, void* context,
                                             Tag... tag) {
  constexpr bool kTagged = sizeof...(tag) > 0;
  const TagMatch match{tag...};
  return {.from = options.source<kTagged>(from),
          .context = context,
          .tag = match.tag,
          .ignore = match.ignore,
          .tagged = kTagged,
          .report = options.report_receives(),
          .min_multi_recv = kTagged ? 0 : options.default_min_multi_recv()};
}

template <typename... Tag>
[[gnu::noinline]] ssize_t recv_generally(fid_ep* handle, void* buffer, std::size_t size, fi_addr_t from,
                                         Tag... tag, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const Bytes bytes = as_bytes(buffer, size);
  RecvOp op = recv_op(endpoint.options(), from, context, tag...);
  op.slices = {&bytes, 1};
  return endpoint.receive(op);
}

template <typename... Tag>
[[gnu::flatten]] ssize_t recv(fid_ep* handle, void* buffer, std::size_t size, void*, fi_addr_t from,
                              Tag... tag, void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const EpOptions& options = endpoint.options();
  const TagMatch match{tag...};
  constexpr bool kTagged = sizeof...(tag) > 0;
  const bool for_one_message = kTagged || options.default_min_multi_recv() == 0;
  if (for_one_message && endpoint.receive_short({.buffer = as_bytes(buffer, size),
                                                 .from = options.source<kTagged>(from),
                                                 .context = context,
                                                 .tag = match.tag,
                                                 .ignore = match.ignore,
                                                 .tagged = kTagged,
                                                 .report = options.report_receives()})) [[likely]] {
    return 0;
  }
  return recv_generally<Tag...>(handle, buffer, size, from, tag..., context);
}

template <typename... Tag>
ssize_t recvv(fid_ep* handle, const iovec* vector, void**, std::size_t count, fi_addr_t from, Tag... tag,
              void* context) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  RecvOp op = recv_op(endpoint.options(), from, context, tag...);
  IovecSpans<Bytes> buffers;
  if (!buffers.read(vector, count) || (op.min_multi_recv != 0 && count != 1)) return -FI_EINVAL;
  op.slices = buffers.spans();
  return endpoint.receive(op);
}

/// Turns the receive into a peek or a claim. Returns false if the flags contradict each other.
bool apply_peek_flags(std::uint64_t flags, RecvOp& op) {
  const bool claim = flags & FI_CLAIM;
  const bool discard = flags & FI_DISCARD;
  if (flags & FI_PEEK) {
    if (claim && discard) return false;
    op.peek = claim ? protocol::Peek::claim : discard ? protocol::Peek::discard : protocol::Peek::look;
    op.report = true;  // because the completion is the only result of a peek
    return true;
  }
  if (!claim || op.min_multi_recv != 0) return false;
  op.recv_claimed = !discard;
  op.discard_claimed = discard;
  op.from = protocol::kAddrUnspec;  // the context identifies the message
  return true;
}

/// The flags of the call replace the endpoint's operation flags.
template <typename Message, bool deferred = false>
ssize_t recvmsg(fid_ep* handle, const Message* message, std::uint64_t flags) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  const EpOptions& options = endpoint.options();
  if (flags & kRxFlagsUnsupported) [[unlikely]]
    return trigger_or_refuse(endpoint, flags & kRxFlagsUnsupported, CallCopy::Kind::receive, *message, flags);
  RecvOp op{.from = options.source<std::is_same_v<Message, fi_msg_tagged>>(message->addr),
            .context = message->context,
            .deferred = deferred,
            .report = options.report_receive(flags),
            .min_multi_recv = options.min_multi_recv(flags)};
  take_tag(*message, op);
  if (op.min_multi_recv != 0 && !options.takes_multi_recv(op.tagged)) return -FI_EBADFLAGS;
  if (flags & kPeekFlags) {
    if (!apply_peek_flags(flags, op)) return -FI_EINVAL;
    if (op.peek != protocol::Peek::none || op.discard_claimed) return endpoint.receive(op);
  }
  IovecSpans<Bytes> buffers;
  if (!buffers.read(message->msg_iov, message->iov_count)) return -FI_EINVAL;
  if (op.min_multi_recv != 0 && message->iov_count != 1) return -FI_EINVAL;
  op.slices = buffers.spans();
  return endpoint.receive(op);
}

}  // namespace

constinit fi_ops_msg msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = recv<>,
    .recvv = recvv<>,
    .recvmsg = recvmsg,
    .send = send<>,
    .sendv = sendv<>,
    .sendmsg = sendmsg,
    .inject = inject<>,
    .senddata = senddata<>,
    .injectdata = injectdata<>,
};

constinit fi_ops_tagged tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = recv<std::uint64_t, std::uint64_t>,
    .recvv = recvv<std::uint64_t, std::uint64_t>,
    .recvmsg = recvmsg,
    .send = send<std::uint64_t>,
    .sendv = sendv<std::uint64_t>,
    .sendmsg = sendmsg,
    .inject = inject<std::uint64_t>,
    .senddata = senddata<std::uint64_t>,
    .injectdata = injectdata<std::uint64_t>,
};

constinit fi_ops_msg deferred_msg_ops = [] {
  auto ops = stub_ops<fi_ops_msg>(kEnosys);
  ops.sendmsg = sendmsg<fi_msg, true>;
  ops.recvmsg = recvmsg<fi_msg, true>;
  return ops;
}();

constinit fi_ops_tagged deferred_tagged_ops = [] {
  auto ops = stub_ops<fi_ops_tagged>(kEnosys);
  ops.sendmsg = sendmsg<fi_msg_tagged, true>;
  ops.recvmsg = recvmsg<fi_msg_tagged, true>;
  return ops;
}();

}  // namespace cluster::api
