#include "sim/atomic_initiator.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "protocol/region_table.h"
#include "sim/allocation_meter.h"
#include "sim/guard.h"
#include "sim/split.h"

namespace cluster::sim {
namespace {

using protocol::RmaIov;
using wire::AtomicOp;

/// Marks the contexts of atomic operations.
constexpr std::uint64_t kAtomicContext = std::uint64_t{1} << 50;
constexpr std::uint64_t kKey = std::uint64_t{1} << 60;
/// Most operations target so many words at the beginning of a row, so that they meet there.
constexpr std::size_t kHotWords = 3;

/// Stores one element of this size for each value.
void store_elements(const std::vector<std::uint64_t>& values, std::size_t size, std::byte* to) {
  for (const std::uint64_t value : values) {
    std::memcpy(to, &value, size);
    to += size;
  }
}

}  // namespace

AtomicInitiator::AtomicInitiator(const ApplicationEnvironment& environment, SeededRandom random,
                                 Quarantine& quarantine)
    : env_(environment), random_(random), quarantine_(quarantine) {
  if (env_.plan.atomics.share == 0) return;
  AtomicRegion& region = env_.atomics.register_region(
      {.host = env_.self,
       .incarnation = env_.incarnation,
       .key = kKey | std::uint64_t{env_.self} << 32 | env_.incarnation,
       .start = random_.chance(kMillion / 2) ? 0 : random_.below(1u << 30) * sizeof(std::uint64_t)});
  env_.regions.add(region.shape().key, region.region());
}

bool AtomicInitiator::start_operation(HostNumber to) {
  if (retry_ == 0) {
    AtomicRegion* const region = env_.atomics.region_of(to);
    if (region == nullptr) return false;
    compose(draw_operation(to, *region));
  }
  return post(retry_);
}

AtomicOperation AtomicInitiator::draw_operation(HostNumber to, AtomicRegion& region) {
  AtomicOperation shape;
  shape.from = env_.self;
  shape.to = to;
  shape.region = &region;
  shape.fenced = random_.chance(env_.plan.fenced);
  AtomicAccess& access = shape.access;
  const bool mixed = random_.chance(env_.plan.atomics.mixed_words);
  access.row =
      mixed ? random_.between(region.mixed_from(), region.rows() - 1) : random_.below(region.mixed_from());
  access.first = random_.chance(800'000) ? random_.below(kHotWords) : random_.below(AtomicRegion::kRowWords);
  access.count = random_.chance(700'000) ? 1 : random_.between(1, AtomicRegion::kRowWords - access.first);
  while (!region.has_space(access.row, access.first, access.count) &&
         access.first + 1 < AtomicRegion::kRowWords) {
    ++access.first;  // the words before cannot record more
    access.count = 1;
  }
  const bool used_up = !region.has_space(access.row, access.first, access.count);
  if (used_up && region.is_mixed(access.row)) access.row = 0;  // in row 0, reads need no record
  const bool reads = random_.chance(200'000) || !region.has_space(access.row, access.first, access.count);
  access.code.type = region.type_of(access.row);
  access.code.fetch = random_.chance(600'000);
  access.code.op = draw_op(region, access.row);
  if (reads) access.code.op = AtomicOp::read;
  if (reads || access.code.compares()) access.code.fetch = true;
  if (access.code.compares()) access.comparands = draw_comparands(access, region);
  shape.forbidden = random_.chance(env_.plan.forbidden);
  shape.reported = access.code.fetch || shape.forbidden || !random_.chance(env_.plan.unreported);
  return shape;
}

AtomicOp AtomicInitiator::draw_op(const AtomicRegion& region, std::size_t row) {
  constexpr std::array kAll{AtomicOp::sum,      AtomicOp::sum,      AtomicOp::write,    AtomicOp::write,
                            AtomicOp::cswap,    AtomicOp::cswap,    AtomicOp::bxor,     AtomicOp::bor,
                            AtomicOp::band,     AtomicOp::min,      AtomicOp::max,      AtomicOp::mswap,
                            AtomicOp::cswap_ne, AtomicOp::cswap_le, AtomicOp::cswap_lt, AtomicOp::cswap_ge,
                            AtomicOp::cswap_gt};
  if (region.is_mixed(row)) return random_.pick(kAll);
  if (region.has_digits(row)) return region.digit_op(row);
  return random_.chance(kMillion / 2) ? AtomicOp::write : AtomicOp::cswap;
}

/// Returns mostly the present values of the words, so that many comparisons succeed.
std::vector<std::uint64_t> AtomicInitiator::draw_comparands(const AtomicAccess& access,
                                                            const AtomicRegion& region) {
  std::vector<std::uint64_t> comparands;
  for (std::size_t i = 0; i < access.count; ++i) {
    const bool present = random_.chance(700'000);
    comparands.push_back(present ? region.value(access.row, access.first + i)
                                 : random_.below(env_.atomics.operations() + 1));
  }
  return comparands;
}

void AtomicInitiator::compose(AtomicOperation shape) {
  const AtomicOperation& operation = env_.atomics.compose(std::move(shape));
  const AtomicAccess& access = operation.access;
  const std::size_t size = size_of(access.code.type);
  retry_ = operation.number;
  Buffers& buffers = buffers_[retry_];
  buffers.length = operation.length();
  if (access.code.operands() > 0) {
    std::vector<std::uint64_t> operands = access.operands;
    operands.resize(access.count, operation.number);  // a forbidden operation has none of its own
    buffers.operands = std::make_unique_for_overwrite<std::byte[]>(buffers.length);
    store_elements(operands, size, buffers.operands.get());
  }
  if (access.code.compares()) {
    buffers.comparands = std::make_unique_for_overwrite<std::byte[]>(buffers.length);
    store_elements(access.comparands, size, buffers.comparands.get());
  }
  if (access.code.fetch) {
    buffers.results = std::make_unique_for_overwrite<std::byte[]>(buffers.length + kGuardBytes);
    std::fill_n(buffers.results.get() + buffers.length, kGuardBytes, kGuard);
  }
}

bool AtomicInitiator::post(MessageNumber number) {
  const AtomicOperation& operation = env_.atomics.operation(number);
  const AtomicAccess& access = operation.access;
  Buffers& buffers = buffers_.at(number);
  std::array<std::array<ConstBytes, protocol::kIovMax>, 2> inputs;
  std::array<Bytes, protocol::kIovMax> outputs;
  const auto split_input = [&](const Quarantine::Buffer& buffer,
                               std::size_t which) -> std::span<const ConstBytes> {
    if (buffer == nullptr) return {};
    const ConstBytes whole{buffer.get(), buffers.length};
    return {inputs[which].data(), split(random_, env_.plan.scattered_buffers, whole, inputs[which])};
  };
  const AtomicRegion::Shape& region = operation.region->shape();
  RmaIov range{region.start + operation.region->offset_of(access.row, access.first), region.key,
               operation.length()};
  if (operation.forbidden) {
    if (random_.chance(kMillion / 2)) {
      range.key ^= std::uint64_t{1} << (50 + random_.below(8));
    } else {
      range.address = region.start + operation.region->length();
    }
  }
  protocol::AtomicRmaOp op;
  op.remote = {&range, 1};
  op.length = operation.length();
  op.to = operation.to;
  op.context = reinterpret_cast<void*>(kAtomicContext | number);
  op.report = operation.reported;
  op.fence = operation.fenced;
  op.more = random_.chance(env_.plan.more);
  op.code = access.code;
  op.slices = split_input(buffers.operands, 0);
  op.compares = split_input(buffers.comparands, 1);
  if (buffers.results != nullptr) {
    const Bytes whole{buffers.results.get(), buffers.length};
    op.results = {outputs.data(), split(random_, env_.plan.scattered_buffers, whole, outputs)};
  }
  op.inject = !access.code.fetch && op.length <= protocol::kInjectMax && random_.chance(env_.plan.injected);
  Status status;
  {
    const AllocationMeter::Scope scope(&env_.memory);
    status = env_.engine.atomic(op);
  }
  env_.trace.line("host %u starts atomic operation %llu (op %d) on host %u, row %zu, %zu words from %zu: %s",
                  env_.self, static_cast<unsigned long long>(number), static_cast<int>(access.code.op),
                  operation.to, access.row, access.count, access.first, describe(status));
  if (status == Status::again) return false;
  if (status != Status::ok) {
    throw SafetyFailure(std::string("an atomic operation was refused: ") + describe(status));
  }
  retry_ = 0;
  env_.atomics.accepted(number);
  if (operation.reported) ++under_way_;
  if (op.inject) quarantine_.take(std::move(buffers.operands), buffers.length);
  return true;
}

void AtomicInitiator::complete(const protocol::Completion& completion) {
  const std::uint64_t number = reinterpret_cast<std::uint64_t>(completion.context) & ~kAtomicContext;
  env_.trace.line("host %u atomic operation %llu ended: %s", env_.self,
                  static_cast<unsigned long long>(number), describe(completion.status));
  const auto found = buffers_.find(number);
  if (found == buffers_.end()) throw SafetyFailure("an atomic operation ended that is not under way here");
  Buffers buffers = std::move(found->second);
  buffers_.erase(found);
  ConstBytes results;
  if (buffers.results != nullptr) {
    if (!all({buffers.results.get() + buffers.length, kGuardBytes}, kGuard)) {
      throw SafetyFailure("a fetching atomic operation was written beyond its buffer");
    }
    results = {buffers.results.get(), buffers.length};
  }
  env_.atomics.ended(completion, number, results);
  if (env_.atomics.operation(number).reported) --under_way_;
  release(buffers);
}

/// The library has given the buffers back.
void AtomicInitiator::release(Buffers& buffers) {
  for (Quarantine::Buffer* buffer : {&buffers.operands, &buffers.comparands, &buffers.results}) {
    quarantine_.take(std::move(*buffer), buffers.length);
  }
}

}  // namespace cluster::sim
