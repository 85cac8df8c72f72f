// Remote atomic operations (fi_atomic). The protocol uses the same numbers for operations and datatypes as
// libfabric.
#include <array>

#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "api/trigger_or_refuse.h"
#include "protocol/atomic_arithmetic.h"

namespace cluster::api {
namespace {

using wire::AtomicCode;
using wire::AtomicOp;
using wire::AtomicType;

static_assert(static_cast<int>(AtomicOp::bxor) == FI_BXOR &&
              static_cast<int>(AtomicOp::read) == FI_ATOMIC_READ);
static_assert(static_cast<int>(AtomicOp::cswap) == FI_CSWAP && static_cast<int>(AtomicOp::mswap) == FI_MSWAP);
static_assert(static_cast<int>(AtomicType::uint64) == FI_UINT64 &&
              static_cast<int>(AtomicType::float32) == FI_FLOAT);
static_assert(static_cast<int>(AtomicType::complex32) == FI_FLOAT_COMPLEX);
static_assert(static_cast<int>(AtomicType::complex_long) == FI_LONG_DOUBLE_COMPLEX);
static_assert(static_cast<int>(AtomicType::uint128) == FI_UINT128);

enum class Form { base, fetch, compare };

/// Translates libfabric's operation and datatype to `code`. Returns false if this form of call does not have
/// the operation, or if the operation does not support the datatype.
bool code_for(Form form, fi_datatype type, fi_op op, AtomicCode& code) {
  const auto op_number = static_cast<std::size_t>(op);
  const auto type_number = static_cast<std::size_t>(type);
  if (op_number >= wire::kAtomicOps || type_number >= wire::kAtomicTypes) return false;
  code = {static_cast<AtomicOp>(op_number), static_cast<AtomicType>(type_number), form != Form::base};
  if (code.compares() != (form == Form::compare)) return false;
  if (code.op == AtomicOp::read && form == Form::base) return false;
  return protocol::supported(code.op, code.type);
}

/// Fills `buffers` from `vector`. Returns false if there are too many buffers, or if one of them has too many
/// elements.
template <typename Bytes>
bool read_elements(IovecSpans<Bytes>& buffers, std::span<const fi_ioc> vector, std::size_t element_size) {
  if (vector.size() > protocol::kIovMax || (!vector.empty() && vector.data() == nullptr)) return false;
  for (const fi_ioc& part : vector) {
    if (part.count > protocol::kAtomicMax) return false;
    buffers.add(as_bytes(part.addr, part.count * element_size));
  }
  return true;
}

/// Returns the number of elements in all buffers, or 0 for a vector that read_elements() refuses.
std::size_t elements_of(std::span<const fi_ioc> vector) {
  if (vector.size() > protocol::kIovMax || vector.data() == nullptr) return 0;
  std::size_t elements = 0;
  for (const fi_ioc& part : vector) elements += part.count;
  return elements;
}

/// The local buffers of a call.
struct AtomicBuffers {
  std::span<const fi_ioc> operands{};
  std::span<const fi_ioc> compares{};
  std::span<const fi_ioc> results{};
};

/// Begins the operation that `message` describes. Takes the operands from `local`.
template <bool deferred = false>
ssize_t post(Endpoint& endpoint, const TxFlags& flags, Form form, const fi_msg_atomic& message,
             const AtomicBuffers& local) noexcept {
  protocol::AtomicRmaOp op;
  if (!code_for(form, message.datatype, message.op, op.code)) return -FI_EOPNOTSUPP;
  const std::size_t element_size = size_of(op.code.type);
  IovecSpans<ConstBytes> operands;
  IovecSpans<ConstBytes> compares;
  IovecSpans<Bytes> results;
  // FI_ATOMIC_READ has no operands. So operands are ignored if the caller passes some.
  const auto operand_vector = op.code.operands() == 0 ? std::span<const fi_ioc>{} : local.operands;
  if (!read_elements(operands, operand_vector, element_size) ||
      !read_elements(compares, local.compares, element_size) ||
      !read_elements(results, local.results, element_size)) {
    return -FI_EINVAL;
  }
  const std::size_t length = op.code.operands() == 0 ? results.length() : operands.length();
  const std::span remote(message.rma_iov, message.rma_iov_count);
  std::array<protocol::RmaIov, protocol::kRmaIovMax> ranges;
  if (remote.size() > ranges.size()) return -FI_EINVAL;
  std::size_t remote_length = 0;
  for (std::size_t i = 0; i < remote.size(); ++i) {
    const fi_rma_ioc& range = remote[i];
    if (range.count == 0 || range.count > protocol::kIovMax * protocol::kAtomicMax) return -FI_EINVAL;
    ranges[i] = {range.addr, range.key, range.count * element_size};
    remote_length += ranges[i].length;
  }
  const bool lengths_match = length > 0 && remote_length == length &&
                             (form != Form::compare || compares.length() == length) &&
                             (form == Form::base || results.length() == length);
  if (!lengths_match) return -FI_EINVAL;
  op.length = length;
  op.slices = operands.spans();
  op.compares = compares.spans();
  op.results = results.spans();
  op.remote = {ranges.data(), remote.size()};
  op.to = message.addr;
  op.context = message.context;
  op.deferred = deferred;
  return endpoint.access(op, flags);
}

/// Does the work of writemsg(), readwritemsg() and compwritemsg(). The flags of the call replace the
/// endpoint's operation flags.
template <bool deferred>
ssize_t post_message(fid_ep* handle, Form form, const fi_msg_atomic* message, const AtomicBuffers& local,
                     std::uint64_t flags) noexcept {
  Endpoint& endpoint = endpoint_of(handle);
  constexpr std::uint64_t kUnsupported = kTxFlagsUnsupported | FI_REMOTE_CQ_DATA | FI_TAGGED;
  if (flags & kUnsupported) [[unlikely]] {
    constexpr CallCopy::Kind kKindOf[] = {CallCopy::Kind::atomic, CallCopy::Kind::fetch,
                                          CallCopy::Kind::compare};
    const AtomicArrays arrays{local.results.data(), local.results.size(), local.compares.data(),
                              local.compares.size()};
    return trigger_or_refuse(endpoint, flags & kUnsupported, kKindOf[static_cast<int>(form)], *message,
                             arrays, flags);
  }
  if (message->rma_iov == nullptr || message->rma_iov_count == 0) return -FI_EINVAL;
  return post<deferred>(endpoint, endpoint.options().tx_flags(flags), form, *message, local);
}

/// The remote side of a call without a message structure: one range, which is as long as the operands or, if
/// there are results, as long as these.
struct RemoteElements {
  fi_addr_t to;
  std::uint64_t address;
  std::uint64_t key;
  fi_datatype type;
  fi_op op;
};

/// Makes the same call with a message structure, and with the endpoint's operation flags or, for an inject,
/// with `inject_flags`. If the operation flags contain FI_TRIGGER, the call becomes a triggered operation.
ssize_t post(fid_ep* handle, Form form, const AtomicBuffers& local, const RemoteElements& remote,
             void* context, const TxFlags* inject_flags = nullptr) noexcept {
  const fi_rma_ioc range{remote.address, elements_of(form == Form::base ? local.operands : local.results),
                         remote.key};
  const fi_msg_atomic message{local.operands.data(),
                              nullptr,
                              local.operands.size(),
                              remote.to,
                              &range,
                              1,
                              remote.type,
                              remote.op,
                              context,
                              0};
  Endpoint& endpoint = endpoint_of(handle);
  const EpOptions& options = endpoint.options();
  if (options.tx_op_flags() & FI_TRIGGER) [[unlikely]]
    return post_message<false>(handle, form, &message, local, options.tx_op_flags());
  return post(endpoint, inject_flags != nullptr ? *inject_flags : options.tx_flags(), form, message, local);
}

fi_ioc elements(const void* buffer, std::size_t count) { return {const_cast<void*>(buffer), count}; }

ssize_t atomic_writev(fid_ep* endpoint, const fi_ioc* vector, void**, std::size_t count, fi_addr_t to,
                      std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                      void* context) noexcept {
  return post(endpoint, Form::base, {{vector, count}}, {to, address, key, type, op}, context);
}

ssize_t atomic_write(fid_ep* endpoint, const void* buffer, std::size_t count, void*, fi_addr_t to,
                     std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                     void* context) noexcept {
  const fi_ioc operand = elements(buffer, count);
  return atomic_writev(endpoint, &operand, nullptr, 1, to, address, key, type, op, context);
}

ssize_t atomic_inject(fid_ep* endpoint, const void* buffer, std::size_t count, fi_addr_t to,
                      std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op) noexcept {
  const fi_ioc operand = elements(buffer, count);
  return post(endpoint, Form::base, {{&operand, 1}}, {to, address, key, type, op}, nullptr,
              &endpoint_of(endpoint).options().inject_flags());
}

ssize_t readwritev(fid_ep* endpoint, const fi_ioc* vector, void**, std::size_t count, fi_ioc* results, void**,
                   std::size_t result_count, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                   fi_datatype type, fi_op op, void* context) noexcept {
  return post(endpoint, Form::fetch, {{vector, count}, {}, {results, result_count}},
              {to, address, key, type, op}, context);
}

ssize_t readwrite(fid_ep* endpoint, const void* buffer, std::size_t count, void*, void* result, void*,
                  fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                  void* context) noexcept {
  const fi_ioc operand = elements(buffer, count);
  fi_ioc before = elements(result, count);
  return readwritev(endpoint, &operand, nullptr, 1, &before, nullptr, 1, to, address, key, type, op, context);
}

ssize_t compwritev(fid_ep* endpoint, const fi_ioc* vector, void**, std::size_t count, const fi_ioc* compares,
                   void**, std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                   void* context) noexcept {
  return post(endpoint, Form::compare, {{vector, count}, {compares, compare_count}, {results, result_count}},
              {to, address, key, type, op}, context);
}

ssize_t compwrite(fid_ep* endpoint, const void* buffer, std::size_t count, void*, const void* compare, void*,
                  void* result, void*, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                  fi_datatype type, fi_op op, void* context) noexcept {
  const fi_ioc operand = elements(buffer, count);
  const fi_ioc comparand = elements(compare, count);
  fi_ioc before = elements(result, count);
  return compwritev(endpoint, &operand, nullptr, 1, &comparand, nullptr, 1, &before, nullptr, 1, to, address,
                    key, type, op, context);
}

std::span<const fi_ioc> operands_of(const fi_msg_atomic& message) {
  return {message.msg_iov, message.iov_count};
}

template <bool deferred>
ssize_t writemsg(fid_ep* endpoint, const fi_msg_atomic* message, std::uint64_t flags) noexcept {
  return post_message<deferred>(endpoint, Form::base, message, {operands_of(*message)}, flags);
}

template <bool deferred>
ssize_t readwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void**,
                     std::size_t result_count, std::uint64_t flags) noexcept {
  return post_message<deferred>(endpoint, Form::fetch, message,
                                {operands_of(*message), {}, {results, result_count}}, flags);
}

template <bool deferred>
ssize_t compwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* compares, void**,
                     std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                     std::uint64_t flags) noexcept {
  return post_message<deferred>(endpoint, Form::compare, message,
                                {operands_of(*message), {compares, compare_count}, {results, result_count}},
                                flags);
}

/// Implements fi_atomicvalid, fi_fetch_atomicvalid and fi_compare_atomicvalid. Sets `count` to the largest
/// number of elements that one call accepts.
template <Form form>
int valid(fid_ep* endpoint, fi_datatype type, fi_op op, std::size_t* count) noexcept {
  AtomicCode code;
  if (!code_for(form, type, op, code)) return -FI_EOPNOTSUPP;
  if (count == nullptr) return -FI_EINVAL;
  *count = static_cast<Endpoint*>(endpoint)->options().limits(EpOptions::Operation::atomic).max_size /
           size_of(code.type);
  return 0;
}

}  // namespace

int query_atomic(fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) noexcept {
  const bool compare = flags & FI_COMPARE_ATOMIC;
  const bool fetch = flags & FI_FETCH_ATOMIC;
  if ((flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC | FI_TAGGED)) || (compare && fetch))
    return -FI_EBADFLAGS;
  if (flags & FI_TAGGED) return -FI_EOPNOTSUPP;  // FI_TAGGED means atomics on the buffers of tagged receives
  AtomicCode code;
  const Form form = compare ? Form::compare : fetch ? Form::fetch : Form::base;
  if (!code_for(form, type, op, code)) return -FI_EOPNOTSUPP;
  if (attributes == nullptr) return -FI_EINVAL;
  attributes->size = size_of(code.type);
  attributes->count = protocol::kAtomicMax / attributes->size;
  return 0;
}

constinit fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = writemsg<false>,
    .inject = atomic_inject,
    .readwrite = readwrite,
    .readwritev = readwritev,
    .readwritemsg = readwritemsg<false>,
    .compwrite = compwrite,
    .compwritev = compwritev,
    .compwritemsg = compwritemsg<false>,
    .writevalid = valid<Form::base>,
    .readwritevalid = valid<Form::fetch>,
    .compwritevalid = valid<Form::compare>,
};
constinit fi_ops_atomic deferred_atomic_ops = [] {
  auto ops = stub_ops<fi_ops_atomic>(kEnosys);
  ops.writemsg = writemsg<true>;
  ops.readwritemsg = readwritemsg<true>;
  ops.compwritemsg = compwritemsg<true>;
  return ops;
}();
/// The table of an endpoint that is not enabled yet, or that a forked child has inherited. Only the
/// fi_atomicvalid calls work.
constinit fi_ops_atomic atomic_ops_disabled = [] {
  auto ops = stub_ops<fi_ops_atomic>(kEopbadstate);
  ops.writevalid = valid<Form::base>;
  ops.readwritevalid = valid<Form::fetch>;
  ops.compwritevalid = valid<Form::compare>;
  return ops;
}();

}  // namespace cluster::api
