#include "sim/remote_access.h"

#include <algorithm>
#include <array>

#include "protocol/regions.h"
#include "sim/memory_account.h"
#include "sim/slices.h"

namespace cluster::sim {
namespace {

/// Tells contexts of remote operations from those of messages and receives.
constexpr std::uint64_t kRemoteContext = std::uint64_t{1} << 49;
constexpr std::size_t kGuardBytes = 16;
constexpr std::byte kGuard{0xA5};
constexpr std::size_t kReadingBytes = 64 * 1024;
/// Writes that a region has room for at a time, of the longest.
constexpr std::size_t kLongestAtATime = 2;
/// Regions that a life opens besides the first ones: the judges keep them all to the end of the run.
constexpr std::uint64_t kRegionsMax = 6;
/// An address no region reaches to.
constexpr std::uint64_t kNowhere = std::uint64_t{1} << 60;

using protocol::RemoteRange;
using Verb = RemoteOperation::Verb;

std::size_t longest(const Surroundings& around) {
  return std::min(kRemoteMax, largest_size(around.plan.sizes, around.thresholds));
}

}  // namespace

RemoteAccess::RemoteAccess(const Surroundings& surroundings, Dice dice, Quarantine& quarantine)
    : around_(surroundings), dice_(dice), quarantine_(quarantine) {
  if (around_.plan.remote == 0) return;
  for (std::uint64_t left = dice_.between(1, 3); left > 0; --left) expose();
}

void RemoteAccess::expose() {
  Exposure::Shape shape;
  shape.host = around_.self;
  shape.life = around_.life;
  // Keys of lives that are over mean nothing to the next one.
  shape.key = std::uint64_t{around_.self} << 40 | std::uint64_t{around_.life} << 20 | ++keys_;
  shape.start = dice_.chance(kMillion / 2) ? 0 : dice_.below(1u << 30);
  shape.reading = kReadingBytes;
  shape.writing = kLongestAtATime * longest(around_) + kReadingBytes;
  shape.readable = !dice_.chance(kMillion / 5);
  shape.writable = !shape.readable || !dice_.chance(kMillion / 5);
  Exposure& exposure = around_.remote.expose(shape);
  around_.regions.add(shape.key, exposure.region());
}

void RemoteAccess::change_regions() {
  const std::vector<Exposure*> exposed = around_.remote.exposed(around_.self);
  if (exposed.empty() || keys_ >= kRegionsMax) return;
  Exposure& closing = *exposed[dice_.below(exposed.size())];
  around_.trace.line("host %u closes region %llu", around_.self,
                     static_cast<unsigned long long>(closing.shape().key));
  around_.regions.remove(closing.shape().key);
  around_.remote.close(closing);
  expose();
}

bool RemoteAccess::order_something(HostNumber to) {
  const std::vector<Exposure*> exposed = around_.remote.exposed(to);
  if (exposed.empty()) return false;
  Exposure& exposure = *exposed[dice_.below(exposed.size())];
  const WorkloadPlan& plan = around_.plan;
  Operation shape;
  shape.from = around_.self;
  shape.to = to;
  shape.verb = dice_.chance(plan.reads) ? Verb::get : Verb::put;
  shape.fenced = dice_.chance(plan.fenced);
  shape.reported = shape.verb == Verb::get || !dice_.chance(plan.unreported);
  shape.has_data = shape.verb == Verb::put && dice_.chance(plan.with_data);
  std::vector<RemoteRange> remote;
  const bool allowed = shape.verb == Verb::get ? exposure.shape().readable : exposure.shape().writable;
  if (!allowed || dice_.chance(plan.forbidden)) {
    RemoteRange range;
    shape_forbidden(shape, exposure, range);
    remote.push_back(range);
    return order(std::move(shape), remote);
  }
  const std::uint64_t ranges = dice_.chance(kMillion / 5) ? dice_.between(2, protocol::kRemoteMax) : 1;
  for (std::uint64_t i = 0; i < ranges; ++i) {
    if (!shape_range(shape, exposure)) break;
    const Operation::Range& range = shape.ranges.back();
    remote.push_back({exposure.shape().start + range.offset, exposure.shape().key, range.length});
  }
  return !shape.ranges.empty() && order(std::move(shape), remote);
}

/// One more range of an operation; false if the region has no room for it.
bool RemoteAccess::shape_range(Operation& operation, Exposure& exposure) {
  std::size_t length = std::min(draw_size(around_.plan.sizes, around_.thresholds, dice_), kRemoteMax);
  Operation::Range range{&exposure, 0, length};
  if (operation.verb == Verb::get) {
    // Zero bytes are nothing to ask for, and what is to be read lies in the part that never changes.
    range.length = std::clamp<std::size_t>(length, 1, kReadingBytes);
    range.offset = dice_.below(kReadingBytes - range.length + 1);
  } else {
    const std::optional<std::size_t> slot = exposure.claim(length, dice_);
    if (!slot) return false;
    range.offset = *slot;
    exposure.expect(range.offset, 0, 0);
  }
  operation.ranges.push_back(range);
  operation.length += range.length;
  return true;
}

/// Asks for something that is not there, beyond the end, or of the wrong kind.
void RemoteAccess::shape_forbidden(Operation& operation, Exposure& exposure, RemoteRange& range) {
  const Exposure::Shape& shape = exposure.shape();
  operation.forbidden = true;
  operation.length = 1 + dice_.below(longest(around_));
  operation.ranges.push_back({&exposure, 0, operation.length});
  range = {shape.start, shape.key, operation.length};
  const bool allowed = operation.verb == Verb::get ? shape.readable : shape.writable;
  if (!allowed) return;
  switch (dice_.below(4)) {
    case 0: range.key ^= std::uint64_t{1} << (50 + dice_.below(8)); break;
    case 1: range.address += exposure.length() - dice_.below(operation.length); break;
    case 2: range.address = shape.start - 1 - dice_.below(100); break;
    default: range.address = kNowhere + dice_.below(100); break;
  }
}

template <typename Order>
void RemoteAccess::fill(Order& order, const Operation& operation, std::span<const RemoteRange> remote) {
  order.remote = remote;
  order.length = operation.length;
  order.to = operation.to;
  order.context = reinterpret_cast<void*>(kRemoteContext | operation.number);
  order.report = operation.reported;
  order.fence = operation.fenced;
  order.more = dice_.chance(around_.plan.more);
}

Fault RemoteAccess::put(const Operation& operation, std::span<const RemoteRange> remote, Buffer& buffer) {
  fill_content(kRemoteContent | operation.number, {buffer.bytes.get(), buffer.length});
  std::array<ConstBytes, protocol::kSlicesMax> slices;
  const std::size_t count =
      cut(dice_, around_.plan.scattered_buffers, ConstBytes{buffer.bytes.get(), buffer.length}, slices);
  protocol::PutOrder order;
  fill(order, operation, remote);
  order.slices = {slices.data(), count};
  order.data = operation.number;
  order.has_data = operation.has_data;
  order.inject = operation.length <= protocol::kInjectMax && dice_.chance(around_.plan.injected);
  const MemoryAccount::Scope scope(&around_.account);
  const Fault fault = around_.engine.put(order);
  if (fault == Fault::none && order.inject) quarantine_.take(std::move(buffer.bytes), buffer.length);
  return fault;
}

Fault RemoteAccess::get(const Operation& operation, std::span<const RemoteRange> remote, Buffer& buffer) {
  std::fill_n(buffer.bytes.get() + buffer.length, kGuardBytes, kGuard);
  std::array<Bytes, protocol::kSlicesMax> slices;
  const std::size_t count =
      cut(dice_, around_.plan.scattered_buffers, Bytes{buffer.bytes.get(), buffer.length}, slices);
  protocol::GetOrder order;
  fill(order, operation, remote);
  order.slices = {slices.data(), count};
  const MemoryAccount::Scope scope(&around_.account);
  return around_.engine.get(order);
}

bool RemoteAccess::order(Operation shape, const std::vector<RemoteRange>& remote) {
  const MessageNumber number = around_.remote.compose(std::move(shape)).number;
  const Operation& operation = around_.remote.operation(number);
  Buffer& buffer = buffers_[number];
  buffer.length = operation.length;
  buffer.bytes = std::make_unique_for_overwrite<std::byte[]>(buffer.length + kGuardBytes);
  const bool is_put = operation.verb == Verb::put;
  const Fault fault = is_put ? put(operation, remote, buffer) : get(operation, remote, buffer);
  if (around_.trace.on()) {
    around_.trace.line("host %u orders remote %s %llu of host %u, %zu bytes in %zu ranges%s%s: %s",
                       around_.self, is_put ? "write" : "read", static_cast<unsigned long long>(number),
                       operation.to, operation.length, remote.size(),
                       operation.forbidden ? ", forbidden" : "", operation.fenced ? ", fenced" : "",
                       describe(fault));
  }
  if (fault == Fault::again) {
    around_.remote.not_accepted(number);
    buffers_.erase(number);
    return false;
  }
  if (fault != Fault::none) {
    throw SafetyFailure(std::string("a remote operation was refused: ") + describe(fault));
  }
  around_.remote.accepted(number);
  if (operation.reported) ++under_way_;
  const bool may_read = is_put && !operation.forbidden && operation.reported && operation.length > 0 &&
                        operation.ranges.front().exposure->shape().readable;
  if (may_read && dice_.chance(around_.plan.read_back)) read_back(number);
  return true;
}

/// Reads what a write just ordered writes, behind a fence.
void RemoteAccess::read_back(MessageNumber number) {
  const Operation& put = around_.remote.operation(number);
  Operation shape;
  shape.from = put.from;
  shape.to = put.to;
  shape.verb = Verb::get;
  shape.fenced = true;
  shape.reads_back = number;
  std::vector<RemoteRange> remote;
  for (const Operation::Range& range : put.ranges) {
    if (range.length == 0) continue;
    const Exposure::Shape& region = range.exposure->shape();
    shape.ranges.push_back(range);
    shape.length += range.length;
    remote.push_back({region.start + range.offset, region.key, range.length});
  }
  order(std::move(shape), remote);
}

void RemoteAccess::complete(const protocol::Completion& completion) {
  const std::uint64_t number = reinterpret_cast<std::uint64_t>(completion.context) & ~kRemoteContext;
  around_.trace.line("host %u remote operation %llu ended: %s", around_.self,
                     static_cast<unsigned long long>(number), describe(completion.fault));
  const auto found = buffers_.find(number);
  if (found == buffers_.end()) throw SafetyFailure("a remote operation ended that is not under way here");
  Buffer buffer = std::move(found->second);
  buffers_.erase(found);
  const Operation& operation = around_.remote.operation(number);
  if (operation.verb == Verb::get) {
    const ConstBytes guard{buffer.bytes.get() + buffer.length, kGuardBytes};
    if (std::any_of(guard.begin(), guard.end(), [](std::byte byte) { return byte != kGuard; })) {
      throw SafetyFailure("a remote read was written beyond its buffer");
    }
  }
  around_.remote.ended(completion, number, {buffer.bytes.get(), buffer.length});
  if (operation.reported) --under_way_;
  quarantine_.take(std::move(buffer.bytes), buffer.length);
}

void RemoteAccess::note_landed(const protocol::Completion& completion) {
  around_.trace.line("host %u has the data of remote write %llu", around_.self,
                     static_cast<unsigned long long>(completion.data));
  around_.remote.data_came(around_.self, around_.life, completion);
}

}  // namespace cluster::sim
