#include "sim/rma_initiator.h"

#include <algorithm>
#include <array>

#include "protocol/region_table.h"
#include "sim/allocation_meter.h"
#include "sim/guard.h"
#include "sim/split.h"

namespace cluster::sim {
namespace {

/// Marks the contexts of remote operations.
constexpr std::uint64_t kRemoteContext = std::uint64_t{1} << 49;
constexpr std::size_t kReadingBytes = 64 * 1024;
/// A region has space for so many of the longest writes at a time.
constexpr std::size_t kLongestAtATime = 2;
/// An incarnation opens at most so many regions, because the oracle keeps all of them to the end of the run.
constexpr std::uint64_t kRegionsMax = 6;
/// An address that no region contains.
constexpr std::uint64_t kNowhere = std::uint64_t{1} << 60;

using protocol::RmaIov;
using Verb = RmaOperation::Verb;

std::size_t longest(const ApplicationEnvironment& env) {
  return std::min(kRemoteMax, largest_size(env.plan.sizes, env.thresholds));
}

}  // namespace

RmaInitiator::RmaInitiator(const ApplicationEnvironment& environment, SeededRandom random,
                           Quarantine& quarantine)
    : env_(environment), random_(random), quarantine_(quarantine) {
  if (env_.plan.remote == 0) return;
  for (std::uint64_t left = random_.between(1, 3); left > 0; --left) register_region();
}

void RmaInitiator::register_region() {
  WatchedRegion::Shape shape;
  shape.host = env_.self;
  shape.incarnation = env_.incarnation;
  // Keys of earlier incarnations mean nothing to this one.
  shape.key = std::uint64_t{env_.self} << 40 | std::uint64_t{env_.incarnation} << 20 | ++keys_;
  shape.start = random_.chance(kMillion / 2) ? 0 : random_.below(1u << 30);
  shape.reading = kReadingBytes;
  shape.writing = kLongestAtATime * longest(env_) + kReadingBytes;
  shape.readable = !random_.chance(kMillion / 5);
  shape.writable = !shape.readable || !random_.chance(kMillion / 5);
  WatchedRegion& region_watch = env_.rma.register_region(shape);
  env_.regions.add(shape.key, region_watch.region());
}

void RmaInitiator::replace_region() {
  const std::vector<WatchedRegion*> registered = env_.rma.registered(env_.self);
  if (registered.empty() || keys_ >= kRegionsMax) return;
  WatchedRegion& closing = *registered[random_.below(registered.size())];
  env_.trace.line("host %u closes region %llu", env_.self,
                  static_cast<unsigned long long>(closing.shape().key));
  {
    const AllocationMeter::Scope scope(&env_.memory);
    env_.regions.remove(closing.shape().key);
  }
  env_.rma.close(closing);
  register_region();
}

bool RmaInitiator::start_operation(HostNumber to) {
  const std::vector<WatchedRegion*> registered = env_.rma.registered(to);
  if (registered.empty()) return false;
  WatchedRegion& region_watch = *registered[random_.below(registered.size())];
  const WorkloadPlan& plan = env_.plan;
  Operation shape;
  shape.from = env_.self;
  shape.to = to;
  shape.verb = random_.chance(plan.reads) ? Verb::read : Verb::write;
  shape.fenced = random_.chance(plan.fenced);
  shape.reported = shape.verb == Verb::read || !random_.chance(plan.unreported);
  shape.has_data = shape.verb == Verb::write && random_.chance(plan.with_data);
  std::vector<RmaIov> remote;
  const bool allowed =
      shape.verb == Verb::read ? region_watch.shape().readable : region_watch.shape().writable;
  if (!allowed || random_.chance(plan.forbidden)) {
    RmaIov range;
    draw_forbidden(shape, region_watch, range);
    remote.push_back(range);
    return order(std::move(shape), remote);
  }
  const std::uint64_t ranges = random_.chance(kMillion / 5) ? random_.between(2, protocol::kRmaIovMax) : 1;
  for (std::uint64_t i = 0; i < ranges; ++i) {
    if (!draw_range(shape, region_watch)) break;
    const Operation::Range& range = shape.ranges.back();
    remote.push_back({region_watch.shape().start + range.offset, region_watch.shape().key, range.length});
  }
  return !shape.ranges.empty() && order(std::move(shape), remote);
}

/// Adds a range to an operation. Returns false if the region has no free slot for it.
bool RmaInitiator::draw_range(Operation& operation, WatchedRegion& region_watch) {
  std::size_t length = std::min(draw_size(env_.plan.sizes, env_.thresholds, random_), kRemoteMax);
  Operation::Range range{&region_watch, 0, length};
  if (operation.verb == Verb::read) {
    // A read has at least one byte, and lies in the part that never changes.
    range.length = std::clamp<std::size_t>(length, 1, kReadingBytes);
    range.offset = random_.below(kReadingBytes - range.length + 1);
  } else {
    const std::optional<std::size_t> slot = region_watch.allocate_slot(length, random_);
    if (!slot) return false;
    range.offset = *slot;
    region_watch.expect(range.offset, 0, 0);
  }
  operation.ranges.push_back(range);
  operation.length += range.length;
  return true;
}

/// Draws a range with a wrong key or outside of the region, or an operation that the region does not allow.
void RmaInitiator::draw_forbidden(Operation& operation, WatchedRegion& region_watch, RmaIov& range) {
  const WatchedRegion::Shape& shape = region_watch.shape();
  operation.forbidden = true;
  operation.length = 1 + random_.below(longest(env_));
  operation.ranges.push_back({&region_watch, 0, operation.length});
  range = {shape.start, shape.key, operation.length};
  const bool allowed = operation.verb == Verb::read ? shape.readable : shape.writable;
  if (!allowed) return;
  switch (random_.below(4)) {
    case 0: range.key ^= std::uint64_t{1} << (50 + random_.below(8)); break;
    case 1: range.address += region_watch.length() - random_.below(operation.length); break;
    case 2: range.address = shape.start - 1 - random_.below(100); break;
    default: range.address = kNowhere + random_.below(100); break;
  }
}

template <typename Order>
void RmaInitiator::fill(Order& order, const Operation& operation, std::span<const RmaIov> remote) {
  order.remote = remote;
  order.length = operation.length;
  order.to = operation.to;
  order.context = reinterpret_cast<void*>(kRemoteContext | operation.number);
  order.report = operation.reported;
  order.fence = operation.fenced;
  order.more = random_.chance(env_.plan.more);
}

Status RmaInitiator::write(const Operation& operation, std::span<const RmaIov> remote, Buffer& buffer) {
  fill_content(kRemoteContent | operation.number, {buffer.bytes.get(), buffer.length});
  std::array<ConstBytes, protocol::kIovMax> slices;
  const std::size_t count =
      split(random_, env_.plan.scattered_buffers, ConstBytes{buffer.bytes.get(), buffer.length}, slices);
  protocol::WriteOp order;
  fill(order, operation, remote);
  order.slices = {slices.data(), count};
  order.data = operation.number;
  order.has_data = operation.has_data;
  order.inject = operation.length <= protocol::kInjectMax && random_.chance(env_.plan.injected);
  const AllocationMeter::Scope scope(&env_.memory);
  const Status status = env_.engine.write(order);
  if (status == Status::ok && order.inject) quarantine_.take(std::move(buffer.bytes), buffer.length);
  return status;
}

Status RmaInitiator::read(const Operation& operation, std::span<const RmaIov> remote, Buffer& buffer) {
  std::fill_n(buffer.bytes.get() + buffer.length, kGuardBytes, kGuard);
  std::array<Bytes, protocol::kIovMax> slices;
  const std::size_t count =
      split(random_, env_.plan.scattered_buffers, Bytes{buffer.bytes.get(), buffer.length}, slices);
  protocol::ReadOp order;
  fill(order, operation, remote);
  order.slices = {slices.data(), count};
  const AllocationMeter::Scope scope(&env_.memory);
  return env_.engine.read(order);
}

bool RmaInitiator::order(Operation shape, const std::vector<RmaIov>& remote) {
  const MessageNumber number = env_.rma.compose(std::move(shape)).number;
  const Operation& operation = env_.rma.operation(number);
  Buffer& buffer = buffers_[number];
  buffer.length = operation.length;
  buffer.bytes = std::make_unique_for_overwrite<std::byte[]>(buffer.length + kGuardBytes);
  const bool is_write = operation.verb == Verb::write;
  const Status status = is_write ? write(operation, remote, buffer) : read(operation, remote, buffer);
  if (env_.trace.on()) {
    env_.trace.line("host %u orders remote %s %llu of host %u, %zu bytes in %zu ranges%s%s: %s", env_.self,
                    is_write ? "write" : "read", static_cast<unsigned long long>(number), operation.to,
                    operation.length, remote.size(), operation.forbidden ? ", forbidden" : "",
                    operation.fenced ? ", fenced" : "", describe(status));
  }
  if (status == Status::again) {
    env_.rma.not_accepted(number);
    buffers_.erase(number);
    return false;
  }
  if (status != Status::ok) {
    throw SafetyFailure(std::string("a remote operation was refused: ") + describe(status));
  }
  env_.rma.accepted(number);
  if (operation.reported) ++under_way_;
  const bool may_read = is_write && !operation.forbidden && operation.reported && operation.length > 0 &&
                        operation.ranges.front().region_watch->shape().readable;
  if (may_read && random_.chance(env_.plan.read_back)) read_back(number);
  return true;
}

/// Orders a read of the bytes of a write that was just ordered. The read has a fence.
void RmaInitiator::read_back(MessageNumber number) {
  const Operation& write = env_.rma.operation(number);
  Operation shape;
  shape.from = write.from;
  shape.to = write.to;
  shape.verb = Verb::read;
  shape.fenced = true;
  shape.reads_back = number;
  std::vector<RmaIov> remote;
  for (const Operation::Range& range : write.ranges) {
    if (range.length == 0) continue;
    const WatchedRegion::Shape& region = range.region_watch->shape();
    shape.ranges.push_back(range);
    shape.length += range.length;
    remote.push_back({region.start + range.offset, region.key, range.length});
  }
  order(std::move(shape), remote);
}

void RmaInitiator::complete(const protocol::Completion& completion) {
  const std::uint64_t number = reinterpret_cast<std::uint64_t>(completion.context) & ~kRemoteContext;
  env_.trace.line("host %u remote operation %llu ended: %s", env_.self,
                  static_cast<unsigned long long>(number), describe(completion.status));
  const auto found = buffers_.find(number);
  if (found == buffers_.end()) throw SafetyFailure("a remote operation ended that is not under way here");
  Buffer buffer = std::move(found->second);
  buffers_.erase(found);
  const Operation& operation = env_.rma.operation(number);
  if (operation.verb == Verb::read) {
    if (!all({buffer.bytes.get() + buffer.length, kGuardBytes}, kGuard)) {
      throw SafetyFailure("a remote read was written beyond its buffer");
    }
  }
  env_.rma.ended(completion, number, {buffer.bytes.get(), buffer.length});
  if (operation.reported) --under_way_;
  quarantine_.take(std::move(buffer.bytes), buffer.length);
}

void RmaInitiator::remote_write_arrived(const protocol::Completion& completion) {
  env_.trace.line("host %u has the data of remote write %llu", env_.self,
                  static_cast<unsigned long long>(completion.data));
  env_.rma.data_came(env_.self, env_.incarnation, completion);
}

}  // namespace cluster::sim
