// Remote atomics (fi_atomic): every call is one order. What libfabric calls an operation and a
// datatype is what the protocol calls so, number for number, as far as both know it.
#include "api/fold.h"
#include "api/ops_tables.h"
#include "protocol/atomic_arithmetic.h"

namespace cluster::api {
namespace {

using protocol::AtomicRmaOp;
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

/// The three kinds of calls.
enum class Form { base, fetch, compare };

/// False if this kind of call has no such operation, or the type does not have it.
bool code_for(Form form, fi_datatype type, fi_op op, AtomicCode& code) {
  const auto op_number = static_cast<std::size_t>(op);
  const auto type_number = static_cast<std::size_t>(type);
  if (op_number >= wire::kAtomicOps || type_number >= wire::kAtomicTypes) return false;
  code = {static_cast<AtomicOp>(op_number), static_cast<AtomicType>(type_number), form != Form::base};
  if (code.compares() != (form == Form::compare)) return false;
  if (code.op == AtomicOp::read && form == Form::base) return false;
  return protocol::supported(code.op, code.type);
}

/// fi_ioc counts elements.
template <typename Slice>
bool take(Slices<Slice>& slices, const fi_ioc* vector, std::size_t count, std::size_t element) {
  if (count > slices.parts.size() || (count > 0 && vector == nullptr)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (vector[i].count > protocol::kAtomicMax) return false;
    slices.parts[i] = as_bytes(vector[i].addr, vector[i].count * element);
    slices.length += slices.parts[i].size();
  }
  return true;
}

/// One call, as its variant spells it: vectors of elements on this side, ranges of them on the other.
struct Call {
  Form form;
  fi_datatype type;
  fi_op op;
  std::span<const fi_ioc> operands;
  std::span<const fi_ioc> compares;
  std::span<const fi_ioc> results;
  std::span<const fi_rma_ioc> remote;  ///< empty: one range, as long as the rest
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

ssize_t act(fid_ep* handle, const TxFlags& manner, const Call& call, fi_addr_t to, void* context) noexcept {
  AtomicRmaOp order;
  if (!code_for(call.form, call.type, call.op, order.code)) return -FI_EOPNOTSUPP;
  const std::size_t element = size_of(order.code.type);
  Slices<ConstBytes> operands;
  Slices<ConstBytes> compares;
  Slices<Bytes> results;
  // A read has no operands, whatever the call brings along.
  const auto brought = order.code.operands() == 0 ? std::span<const fi_ioc>{} : call.operands;
  if (!take(operands, brought.data(), brought.size(), element) ||
      !take(compares, call.compares.data(), call.compares.size(), element) ||
      !take(results, call.results.data(), call.results.size(), element)) {
    return -FI_EINVAL;
  }
  const std::size_t length = order.code.operands() == 0 ? results.length : operands.length;
  std::array<protocol::RmaIov, protocol::kRmaIovMax> ranges;
  std::size_t remote_length = call.remote.empty() ? length : 0;
  std::size_t range_count = call.remote.empty() ? 1 : call.remote.size();
  if (range_count > ranges.size()) return -FI_EINVAL;
  ranges[0] = {call.address, call.key, length};
  for (std::size_t i = 0; i < call.remote.size(); ++i) {
    const fi_rma_ioc& range = call.remote[i];
    if (range.count == 0 || range.count > protocol::kAtomicMax) return -FI_EINVAL;
    ranges[i] = {range.addr, range.key, range.count * element};
    remote_length += ranges[i].length;
  }
  const bool fits = length > 0 && remote_length == length &&
                    (call.form != Form::compare || compares.length == length) &&
                    (call.form == Form::base || results.length == length);
  if (!fits) return -FI_EINVAL;
  order.length = length;
  order.slices = {operands.parts.data(), brought.size()};
  order.compares = {compares.parts.data(), call.compares.size()};
  order.results = {results.parts.data(), call.results.size()};
  order.remote = {ranges.data(), range_count};
  order.to = to;
  order.context = context;
  order.report = manner.report;
  order.inject = manner.inject;
  order.fence = manner.fence;
  order.more = manner.more;
  return static_cast<Endpoint&>(*handle).access(order);
}

const TxFlags& usual(fid_ep* handle) { return static_cast<Endpoint*>(handle)->tx_flags(); }

fi_ioc elements(const void* buffer, std::size_t count) { return {const_cast<void*>(buffer), count}; }

ssize_t write(fid_ep* endpoint, const void* buffer, std::size_t count, void*, fi_addr_t to,
              std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) noexcept {
  const fi_ioc operand = elements(buffer, count);
  return act(endpoint, usual(endpoint), {Form::base, type, op, {&operand, 1}, {}, {}, {}, address, key}, to,
             context);
}

ssize_t writev(fid_ep* endpoint, const fi_ioc* vector, void**, std::size_t count, fi_addr_t to,
               std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op, void* context) noexcept {
  return act(endpoint, usual(endpoint), {Form::base, type, op, {vector, count}, {}, {}, {}, address, key}, to,
             context);
}

ssize_t inject(fid_ep* endpoint, const void* buffer, std::size_t count, fi_addr_t to, std::uint64_t address,
               std::uint64_t key, fi_datatype type, fi_op op) noexcept {
  const fi_ioc operand = elements(buffer, count);
  TxFlags manner;
  manner.report = false;
  manner.inject = true;
  return act(endpoint, manner, {Form::base, type, op, {&operand, 1}, {}, {}, {}, address, key}, to, nullptr);
}

ssize_t readwrite(fid_ep* endpoint, const void* buffer, std::size_t count, void*, void* result, void*,
                  fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                  void* context) noexcept {
  const fi_ioc operand = elements(buffer, count);
  const fi_ioc before = elements(result, count);
  return act(endpoint, usual(endpoint),
             {Form::fetch, type, op, {&operand, 1}, {}, {&before, 1}, {}, address, key}, to, context);
}

ssize_t readwritev(fid_ep* endpoint, const fi_ioc* vector, void**, std::size_t count, fi_ioc* results, void**,
                   std::size_t result_count, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                   fi_datatype type, fi_op op, void* context) noexcept {
  return act(endpoint, usual(endpoint),
             {Form::fetch, type, op, {vector, count}, {}, {results, result_count}, {}, address, key}, to,
             context);
}

ssize_t compwrite(fid_ep* endpoint, const void* buffer, std::size_t count, void*, const void* compare, void*,
                  void* result, void*, fi_addr_t to, std::uint64_t address, std::uint64_t key,
                  fi_datatype type, fi_op op, void* context) noexcept {
  const fi_ioc operand = elements(buffer, count);
  const fi_ioc comparand = elements(compare, count);
  const fi_ioc before = elements(result, count);
  return act(endpoint, usual(endpoint),
             {Form::compare, type, op, {&operand, 1}, {&comparand, 1}, {&before, 1}, {}, address, key}, to,
             context);
}

ssize_t compwritev(fid_ep* endpoint, const fi_ioc* vector, void**, std::size_t count, const fi_ioc* compares,
                   void**, std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                   fi_addr_t to, std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                   void* context) noexcept {
  return act(endpoint, usual(endpoint),
             {Form::compare,
              type,
              op,
              {vector, count},
              {compares, compare_count},
              {results, result_count},
              {},
              address,
              key},
             to, context);
}

/// The three calls with flags: those of the call take the place of the endpoint's.
ssize_t act_message(fid_ep* endpoint, Form form, const fi_msg_atomic* message,
                    std::span<const fi_ioc> compares, std::span<const fi_ioc> results,
                    std::uint64_t flags) noexcept {
  if (flags & (kTxFlagsUnsupported | FI_REMOTE_CQ_DATA | FI_TAGGED)) return -FI_EBADFLAGS;
  if (message->rma_iov == nullptr || message->rma_iov_count == 0) return -FI_EINVAL;
  const Call call{form,
                  message->datatype,
                  message->op,
                  {message->msg_iov, message->iov_count},
                  compares,
                  results,
                  {message->rma_iov, message->rma_iov_count}};
  return act(endpoint, static_cast<Endpoint*>(endpoint)->tx_flags(flags), call, message->addr,
             message->context);
}

ssize_t writemsg(fid_ep* endpoint, const fi_msg_atomic* message, std::uint64_t flags) noexcept {
  return act_message(endpoint, Form::base, message, {}, {}, flags);
}

ssize_t readwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, fi_ioc* results, void**,
                     std::size_t result_count, std::uint64_t flags) noexcept {
  return act_message(endpoint, Form::fetch, message, {}, {results, result_count}, flags);
}

ssize_t compwritemsg(fid_ep* endpoint, const fi_msg_atomic* message, const fi_ioc* compares, void**,
                     std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                     std::uint64_t flags) noexcept {
  return act_message(endpoint, Form::compare, message, {compares, compare_count}, {results, result_count},
                     flags);
}

/// fi_atomicvalid and its sisters: how many elements one call takes.
template <Form form>
int valid(fid_ep* endpoint, fi_datatype type, fi_op op, std::size_t* count) noexcept {
  AtomicCode code;
  if (!code_for(form, type, op, code)) return -FI_EOPNOTSUPP;
  if (count == nullptr) return -FI_EINVAL;
  *count = static_cast<Endpoint*>(endpoint)->longest_atomic() / size_of(code.type);
  return 0;
}

template <typename Answer>
constexpr fi_ops_atomic stub_ops(Answer answer) {
  return {
      .size = sizeof(fi_ops_atomic),
      .write = answer,
      .writev = answer,
      .writemsg = answer,
      .inject = answer,
      .readwrite = answer,
      .readwritev = answer,
      .readwritemsg = answer,
      .compwrite = answer,
      .compwritev = answer,
      .compwritemsg = answer,
      .writevalid = answer,
      .readwritevalid = answer,
      .compwritevalid = answer,
  };
}

/// What is valid can be asked at any time.
constexpr fi_ops_atomic early() {
  fi_ops_atomic ops = stub_ops(kEopbadstate);
  ops.writevalid = valid<Form::base>;
  ops.readwritevalid = valid<Form::fetch>;
  ops.compwritevalid = valid<Form::compare>;
  return ops;
}

}  // namespace

int query_atomic(fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* attributes,
                 std::uint64_t flags) noexcept {
  const bool compare = flags & FI_COMPARE_ATOMIC;
  const bool fetch = flags & FI_FETCH_ATOMIC;
  if ((flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC | FI_TAGGED)) || (compare && fetch))
    return -FI_EBADFLAGS;
  if (flags & FI_TAGGED) return -FI_EOPNOTSUPP;  // on buffers of tagged receives
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
    .write = write,
    .writev = writev,
    .writemsg = writemsg,
    .inject = inject,
    .readwrite = readwrite,
    .readwritev = readwritev,
    .readwritemsg = readwritemsg,
    .compwrite = compwrite,
    .compwritev = compwritev,
    .compwritemsg = compwritemsg,
    .writevalid = valid<Form::base>,
    .readwritevalid = valid<Form::fetch>,
    .compwritevalid = valid<Form::compare>,
};
constinit fi_ops_atomic atomic_ops_disabled = early();
constinit fi_ops_atomic atomic_ops_unsupported = stub_ops(kEnosys);

}  // namespace cluster::api
