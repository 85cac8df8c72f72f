// Collective operations: the ops table of fi_collective, and fi_query_collective. `count` is the number of
// elements that one member contributes or gets. A buffer with a block for each member holds `count` elements
// in each block.
#include <rdma/fi_collective.h>

#include "api/endpoint.h"
#include "api/ops_tables.h"
#include "protocol/atomic_arithmetic.h"

namespace cluster::api {
namespace {

using collective::Arguments;
using collective::Kind;
using wire::AtomicOp;
using wire::AtomicType;

static_assert(static_cast<int>(Kind::barrier) == FI_BARRIER && static_cast<int>(Kind::gather) == FI_GATHER);
static_assert(static_cast<int>(Kind::reduce_scatter) == FI_REDUCE_SCATTER);

bool reduces(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

/// Translates libfabric's datatype and operation. Returns false if the provider does not support the
/// datatype, or the operation on this datatype.
bool translate(Kind kind, fi_datatype type, fi_op op, collective::Reduction& reduction) {
  const auto type_number = static_cast<std::size_t>(type);
  const auto op_number = static_cast<std::size_t>(op);
  if (type_number >= wire::kAtomicTypes) return false;
  reduction.type = static_cast<AtomicType>(type_number);
  if (!reduces(kind)) return true;
  if (op_number >= wire::kAtomicOps) return false;
  reduction.op = static_cast<AtomicOp>(op_number);
  return protocol::combines(reduction.op) && protocol::supported(reduction.op, reduction.type);
}

/// The arguments of the collective calls, in the order in which the calls have them.
struct Call {
  Kind kind;
  const void* source;
  std::size_t count;
  void* target;
  fi_addr_t team;
  fi_addr_t root;
  fi_datatype type;
  fi_op op;
  void* context;
};
constexpr fi_addr_t kNoRoot = FI_ADDR_NOTAVAIL;

bool has_root(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::scatter || kind == Kind::gather;
}

/// Sets the source and the target of this member. Each has one block of `size` bytes, a block for each member
/// of the team, or no block.
void set_buffers(const Call& call, std::size_t size, std::size_t members, bool is_root,
                 Arguments& arguments) {
  std::size_t sources = 1;
  std::size_t targets = 1;
  switch (call.kind) {
    case Kind::barrier: sources = targets = 0; break;
    case Kind::broadcast: sources = 0; break;
    case Kind::alltoall: sources = targets = members; break;
    case Kind::allreduce: break;
    case Kind::allgather: targets = members; break;
    case Kind::reduce_scatter: sources = members; break;
    case Kind::reduce: targets = is_root ? 1 : 0; break;
    case Kind::scatter: sources = is_root ? members : 0; break;
    case Kind::gather: targets = is_root ? members : 0; break;
  }
  arguments.source = as_bytes(call.source, sources * size);
  arguments.target = as_bytes(call.target, targets * size);
}

ssize_t start(fid_ep* handle, const Call& call, const TxFlags& flags) noexcept {
  return guarded([&]() -> ssize_t {
    Endpoint& endpoint = endpoint_of(handle);
    Arguments arguments{.kind = call.kind};
    if (!translate(call.kind, call.type, call.op, arguments.reduction)) return -FI_EOPNOTSUPP;
    const std::size_t element = size_of(arguments.reduction.type);
    if (call.count > SIZE_MAX / 2 / element / collective::kMembersMax) return -FI_EMSGSIZE;
    const Status status = endpoint.engine()->with_collectives([&](collective::Collectives& collectives) {
      collective::Team* const team = collectives.find(call.team);
      if (team == nullptr) return Status::bad_address;
      if (has_root(call.kind)) arguments.root = team->find(call.root);
      if (arguments.root == collective::kNoMember) return Status::bad_address;
      const collective::TeamLayout& layout = team->layout();
      set_buffers(call, call.count * element, layout.size(), layout.self() == arguments.root, arguments);
      const bool missing = (arguments.source.data() == nullptr && !arguments.source.empty()) ||
                           (arguments.target.data() == nullptr && !arguments.target.empty());
      if (missing || (!team->complete() && team->status() == Status::ok)) return Status::bad_address;
      return collectives.start(*team, arguments, call.context, flags.report);
    });
    if (status == Status::again) endpoint.engine()->try_poll();
    return status == Status::ok ? 0 : -fi_errno_of(status);
  });
}

ssize_t start(fid_ep* endpoint, const Call& call, std::uint64_t flags) noexcept {
  if (flags & (kTxFlagsUnsupported | FI_REMOTE_CQ_DATA)) return -FI_EBADFLAGS;
  return start(endpoint, call, endpoint_of(endpoint).options().tx_flags(flags));
}

Call barrier_of(fi_addr_t team, void* context) {
  return {Kind::barrier, nullptr, 0, nullptr, team, kNoRoot, FI_UINT8, FI_NOOP, context};
}

ssize_t barrier(fid_ep* endpoint, fi_addr_t team, void* context) noexcept {
  return start(endpoint, barrier_of(team, context), endpoint_of(endpoint).options().tx_flags());
}

ssize_t barrier2(fid_ep* endpoint, fi_addr_t team, std::uint64_t flags, void* context) noexcept {
  return start(endpoint, barrier_of(team, context), flags);
}

ssize_t broadcast(fid_ep* endpoint, void* buffer, std::size_t count, void*, fi_addr_t team, fi_addr_t root,
                  fi_datatype type, std::uint64_t flags, void* context) noexcept {
  return start(endpoint, {Kind::broadcast, nullptr, count, buffer, team, root, type, FI_NOOP, context},
               flags);
}

/// Implements alltoall and allgather, in which every member gets data from every other member.
template <Kind kind>
ssize_t exchange(fid_ep* endpoint, const void* buffer, std::size_t count, void*, void* result, void*,
                 fi_addr_t team, fi_datatype type, std::uint64_t flags, void* context) noexcept {
  return start(endpoint, {kind, buffer, count, result, team, kNoRoot, type, FI_NOOP, context}, flags);
}

/// Implements allreduce and reduce_scatter.
template <Kind kind>
ssize_t combine(fid_ep* endpoint, const void* buffer, std::size_t count, void*, void* result, void*,
                fi_addr_t team, fi_datatype type, fi_op op, std::uint64_t flags, void* context) noexcept {
  return start(endpoint, {kind, buffer, count, result, team, kNoRoot, type, op, context}, flags);
}

ssize_t reduce(fid_ep* endpoint, const void* buffer, std::size_t count, void*, void* result, void*,
               fi_addr_t team, fi_addr_t root, fi_datatype type, fi_op op, std::uint64_t flags,
               void* context) noexcept {
  return start(endpoint, {Kind::reduce, buffer, count, result, team, root, type, op, context}, flags);
}

/// Implements scatter and gather, in which blocks travel between the root and all members.
template <Kind kind>
ssize_t move_blocks(fid_ep* endpoint, const void* buffer, std::size_t count, void*, void* result, void*,
                    fi_addr_t team, fi_addr_t root, fi_datatype type, std::uint64_t flags,
                    void* context) noexcept {
  return start(endpoint, {kind, buffer, count, result, team, root, type, FI_NOOP, context}, flags);
}

/// Implements the `msg` call, in which a message structure names the operation. Each buffer must be
/// contiguous.
ssize_t message(fid_ep* endpoint, const fi_msg_collective* call, fi_ioc* results, void**,
                std::size_t result_count, std::uint64_t flags) noexcept {
  if (call == nullptr || call->iov_count > 1 || result_count > 1) return -FI_EINVAL;
  const auto number = static_cast<unsigned>(call->coll);
  if (number > static_cast<unsigned>(Kind::gather)) return -FI_EOPNOTSUPP;
  const auto kind = static_cast<Kind>(number);
  const fi_ioc none{};
  const fi_ioc& source = call->iov_count == 0 ? none : call->msg_iov[0];
  const fi_ioc& result = result_count == 0 ? none : results[0];
  const bool by_result = kind == Kind::scatter || kind == Kind::reduce_scatter;
  const std::size_t count = by_result && result_count != 0 ? result.count : source.count;
  void* const target = kind == Kind::broadcast ? source.addr : result.addr;
  return start(endpoint,
               {kind, source.addr, count, target, call->coll_addr, call->root_addr, call->datatype, call->op,
                call->context},
               flags);
}

}  // namespace

int query_collective(fid_domain*, fi_collective_op coll, fi_collective_attr* attributes,
                     std::uint64_t flags) noexcept {
  const auto number = static_cast<unsigned>(coll);
  if (flags & ~FI_SCATTER) return -FI_EBADFLAGS;
  if (attributes == nullptr || attributes->mode != 0) return -FI_EINVAL;
  if (number > static_cast<unsigned>(Kind::gather)) return -FI_EOPNOTSUPP;
  const auto kind = static_cast<Kind>(number);
  attributes->max_members = collective::kMembersMax;
  attributes->datatype_attr = {};
  if (kind == Kind::barrier) {
    const bool none = attributes->op == FI_NOOP && attributes->datatype == FI_VOID;
    return none ? 0 : -FI_EOPNOTSUPP;
  }
  collective::Reduction reduction;
  if (!translate(kind, attributes->datatype, attributes->op, reduction)) return -FI_EOPNOTSUPP;
  attributes->datatype_attr.size = size_of(reduction.type);
  attributes->datatype_attr.count = SIZE_MAX / 2 / size_of(reduction.type) / collective::kMembersMax;
  return 0;
}

constinit fi_ops_collective collective_ops = {
    .size = sizeof(fi_ops_collective),
    .barrier = barrier,
    .broadcast = broadcast,
    .alltoall = exchange<Kind::alltoall>,
    .allreduce = combine<Kind::allreduce>,
    .allgather = exchange<Kind::allgather>,
    .reduce_scatter = combine<Kind::reduce_scatter>,
    .reduce = reduce,
    .scatter = move_blocks<Kind::scatter>,
    .gather = move_blocks<Kind::gather>,
    .msg = message,
    .barrier2 = barrier2,
};

}  // namespace cluster::api
