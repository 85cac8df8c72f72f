#include "sim/atomic_oracle.h"

#include <algorithm>

namespace cluster::sim {
namespace {

using AtomicState = AtomicOperation::State;

/// Returns a number that stands for the process which ordered the operation.
std::uint64_t source_of(const AtomicOperation& operation) {
  return std::uint64_t{operation.from} << 32 | operation.from_incarnation;
}

}  // namespace

std::string AtomicOracle::text(const AtomicOperation& operation) {
  const AtomicAccess& access = operation.access;
  return "atomic operation " + std::to_string(operation.number) + " (op " +
         std::to_string(static_cast<int>(access.code.op)) + (access.code.fetch ? ", fetching" : "") +
         ") from host " + std::to_string(operation.from) + " (incarnation " +
         std::to_string(operation.from_incarnation) + ") to host " + std::to_string(operation.to) +
         ", words " + std::to_string(access.first) + " to " + std::to_string(access.first + access.count) +
         " of row " + std::to_string(access.row) + (operation.forbidden ? ", forbidden" : "") + ", state " +
         std::to_string(static_cast<int>(operation.state));
}

void AtomicOracle::fail(const std::string& what, const AtomicOperation& operation) {
  throw SafetyFailure(what + ": " + text(operation));
}

AtomicRegion* AtomicOracle::region_of(HostNumber host) {
  const auto found = std::find_if(regions_.begin(), regions_.end(), [&](const AtomicRegion& region) {
    return region.shape().host == host && region.shape().incarnation == incarnations_.of(host);
  });
  return found == regions_.end() || !incarnations_.alive(host) ? nullptr : &*found;
}

/// Returns true if the process that had the region has ended.
bool AtomicOracle::region_gone(const AtomicOperation& operation) const {
  const AtomicRegion::Shape& shape = operation.region->shape();
  return shape.incarnation != incarnations_.of(shape.host) || !incarnations_.alive(shape.host);
}

void AtomicOracle::incarnation_ends(HostNumber host) {
  for (AtomicOperation& operation : operations_) {
    const bool its_own = operation.from == host && operation.from_incarnation == incarnations_.of(host);
    const bool over = operation.state == AtomicState::succeeded || operation.state == AtomicState::failed;
    if (its_own && !over) operation.state = AtomicState::abandoned;
  }
}

AtomicOperation& AtomicOracle::compose(AtomicOperation shape) {
  shape.number = operations_.size() + 1;
  shape.from_incarnation = incarnations_.of(shape.from);
  if (!shape.forbidden) shape.region->add(shape.access, shape.number, source_of(shape));
  return operations_.emplace_back(std::move(shape));
}

void AtomicOracle::accepted(MessageNumber number) {
  AtomicOperation& operation = this->operation(number);
  operation.started = incarnations_.begin(operation.from, operation.to);
  operation.accepted_at = ++time_;
  operation.state = operation.reported ? AtomicState::under_way : AtomicState::unreported;
  operation.region->accepted(operation.access, operation.accepted_at);
  accepted_[{operation.from, operation.to}].push_back(number);
}

void AtomicOracle::ended(const protocol::Completion& completion, MessageNumber number, ConstBytes results) {
  using Kind = protocol::Completion::Kind;
  if (number == 0 || number > operations_.size())
    throw SafetyFailure("an atomic operation ended that never was");
  AtomicOperation& operation = this->operation(number);
  const bool expected = operation.state == AtomicState::under_way ||
                        (operation.state == AtomicState::unreported && completion.status != Status::ok);
  if (!expected) fail(std::string("ended twice (") + describe(completion.status) + ")", operation);
  if (completion.kind != (operation.access.code.fetch ? Kind::fetch : Kind::atomic))
    fail("ended as another", operation);
  if (completion.status != Status::ok) {
    operation.state = AtomicState::failed;
    const bool access_refused =
        completion.status == Status::access && (operation.forbidden || region_gone(operation));
    if (!access_refused && !incarnations_.operation_failed(operation.from, operation.to, operation.started)) {
      fail(std::string("failed without cause (") + describe(completion.status) + ")", operation);
    }
    return;
  }
  if (operation.forbidden) fail("a forbidden access succeeded", operation);
  operation.state = AtomicState::succeeded;
  ++succeeded_;
  check_fence(operation);
  const AtomicRecord reader{.number = number,
                            .source = source_of(operation),
                            .accepted_at = operation.accepted_at,
                            .ended_at = ++time_};
  if (const std::string wrong = operation.region->ended(operation.access, reader, results); !wrong.empty()) {
    fail(wrong, operation);
  }
}

void AtomicOracle::check_fence(const AtomicOperation& operation) const {
  if (!operation.fenced) return;
  for (const MessageNumber number : accepted_.at({operation.from, operation.to})) {
    if (number == operation.number) return;
    const AtomicOperation& before = operations_[number - 1];
    if (before.from_incarnation == operation.from_incarnation && before.state == AtomicState::under_way) {
      fail("a fence was passed by " + text(before), operation);
    }
  }
}

void AtomicOracle::check_complete() {
  for (const AtomicOperation& operation : operations_) {
    if (operation.state == AtomicState::under_way) {
      throw LivenessFailure("an atomic operation never ended: " + text(operation));
    }
    const bool owed = operation.state == AtomicState::unreported && !operation.forbidden &&
                      !region_gone(operation) &&
                      !incarnations_.error_permitted(operation.from, operation.to, operation.started);
    if (owed) operation.region->expect(operation.access);
  }
  for (const AtomicRegion& region : regions_) {
    const std::string wrong = region.check_final();
    if (wrong.empty()) continue;
    throw SafetyFailure("atomic region of host " + std::to_string(region.shape().host) + " (incarnation " +
                        std::to_string(region.shape().incarnation) + "): " + wrong);
  }
}

std::uint64_t AtomicOracle::histories() const {
  std::uint64_t count = 0;
  for (const AtomicRegion& region : regions_) count += region.histories();
  return count;
}

std::string AtomicOracle::unfinished() const {
  std::size_t count = 0;
  std::string shown;
  for (const AtomicOperation& operation : operations_) {
    if (operation.state != AtomicState::under_way) continue;
    if (count++ == 0) shown = "; " + text(operation);
  }
  return std::to_string(count) + " atomic operations" + shown;
}

}  // namespace cluster::sim
