#include "sim/rma_oracle.h"

#include <algorithm>

namespace cluster::sim {
namespace {

using RmaState = RmaOperation::State;
using Verb = RmaOperation::Verb;

std::string text(const RmaOperation& operation) {
  std::string text = std::string(operation.verb == Verb::write ? "remote write " : "remote read ") +
                     std::to_string(operation.number) + " from host " + std::to_string(operation.from) +
                     " (incarnation " + std::to_string(operation.from_incarnation) + ") to host " +
                     std::to_string(operation.to) + ", length " + std::to_string(operation.length) +
                     (operation.forbidden ? ", forbidden" : "") + ", state " +
                     std::to_string(static_cast<int>(operation.state));
  for (const RmaOperation::Range& range : operation.ranges) {
    text += ", " + std::to_string(range.length) + " at " + std::to_string(range.offset) + " of region " +
            std::to_string(range.region_watch->shape().key);
  }
  return text;
}

[[noreturn]] void fail(const std::string& what, const RmaOperation& operation) {
  throw SafetyFailure(what + ": " + text(operation));
}

}  // namespace

WatchedRegion& RmaOracle::register_region(const WatchedRegion::Shape& shape) {
  return regions_.emplace_back(shape);
}

std::vector<WatchedRegion*> RmaOracle::registered(HostNumber host) {
  std::vector<WatchedRegion*> found;
  for (WatchedRegion& region_watch : regions_) {
    const WatchedRegion::Shape& shape = region_watch.shape();
    if (shape.host == host && shape.incarnation == incarnations_.of(host) && region_watch.open())
      found.push_back(&region_watch);
  }
  return found;
}

void RmaOracle::close(WatchedRegion& region_watch) {
  if (const std::string wrong = region_watch.violation(); !wrong.empty()) {
    throw SafetyFailure("region " + std::to_string(region_watch.shape().key) + " of host " +
                        std::to_string(region_watch.shape().host) + " was " + wrong);
  }
  region_watch.close();
}

void RmaOracle::incarnation_ends(HostNumber host) {
  for (WatchedRegion* region_watch : registered(host)) close(*region_watch);
  for (RmaOperation& operation : operations_) {
    const bool its_own = operation.from == host && operation.from_incarnation == incarnations_.of(host);
    const bool over = operation.state == RmaState::succeeded || operation.state == RmaState::failed;
    if (its_own && !over) operation.state = RmaState::abandoned;
  }
}

RmaOperation& RmaOracle::compose(RmaOperation shape) {
  shape.number = operations_.size() + 1;
  shape.from_incarnation = incarnations_.of(shape.from);
  std::size_t from = 0;
  for (const RmaOperation::Range& range : shape.ranges) {
    if (shape.verb == Verb::write && !shape.forbidden) {
      range.region_watch->expect(range.offset, kRemoteContent | shape.number, from);
    }
    from += range.length;
  }
  return operations_.emplace_back(std::move(shape));
}

void RmaOracle::accepted(MessageNumber number) {
  RmaOperation& operation = this->operation(number);
  operation.started = incarnations_.begin(operation.from, operation.to);
  look_after_silent();
  operation.state = operation.reported ? RmaState::under_way : RmaState::silent;
  if (!operation.reported) silent_.push_back(number);
  lanes_[{operation.from, operation.to}].order.push_back(number);
  if (operation.reads_back != 0) ++this->operation(operation.reads_back).readers;
}

/// An unreported write is over once all its bytes, and its data, have been seen.
void RmaOracle::look_after_silent() {
  std::erase_if(silent_, [this](MessageNumber number) {
    RmaOperation& write = operation(number);
    if (write.state != RmaState::silent || write.forbidden) return true;
    if (!landed(write) || (write.has_data && !write.data_came)) return false;
    for (const RmaOperation::Range& range : write.ranges) range.region_watch->seal(range.offset);
    return write.over = true;
  });
}

void RmaOracle::not_accepted(MessageNumber number) {
  RmaOperation& operation = this->operation(number);
  operation.state = RmaState::failed;
  if (operation.verb != Verb::write || operation.forbidden) return;
  for (const RmaOperation::Range& range : operation.ranges) range.region_watch->release_slot(range.offset);
}

bool RmaOracle::landed(const RmaOperation& operation) const {
  return operation.over ||
         std::all_of(operation.ranges.begin(), operation.ranges.end(),
                     [](const auto& range) { return range.region_watch->landed(range.offset); });
}

bool RmaOracle::closed(const RmaOperation& operation) const {
  return std::any_of(operation.ranges.begin(), operation.ranges.end(),
                     [](const auto& range) { return !range.region_watch->open(); });
}

/// Returns true if nothing more is to be expected of the operation.
bool RmaOracle::settled(const RmaOperation& operation) const {
  return operation.verb != Verb::write || operation.forbidden || closed(operation) ||
         (operation.state != RmaState::under_way && operation.state != RmaState::silent);
}

void RmaOracle::ended(const protocol::Completion& completion, MessageNumber number, ConstBytes read) {
  using Kind = protocol::Completion::Kind;
  if (number == 0 || number > operations_.size())
    throw SafetyFailure("a remote operation ended that never was");
  RmaOperation& operation = this->operation(number);
  const bool expected = operation.state == RmaState::under_way ||
                        (operation.state == RmaState::silent && completion.status != Status::ok);
  if (!expected) fail(std::string("ended twice (") + describe(completion.status) + ")", operation);
  if (completion.kind != (operation.verb == Verb::write ? Kind::write : Kind::read)) {
    fail("ended as another", operation);
  }
  if (completion.status == Status::ok) {
    if (operation.forbidden) fail("a forbidden access succeeded", operation);
    operation.state = RmaState::succeeded;
    ++succeeded_;
    check_fence(operation);
    return operation.verb == Verb::write ? write_ended(operation) : read_ended(operation, read);
  }
  operation.state = RmaState::failed;
  const bool access_refused =
      completion.status == Status::access && (operation.forbidden || closed(operation));
  if (!access_refused && !incarnations_.operation_failed(operation.from, operation.to, operation.started)) {
    fail(std::string("failed without cause (") + describe(completion.status) + ")", operation);
  }
  if (operation.verb == Verb::write) return finish(operation);
  if (operation.reads_back == 0) return;
  RmaOperation& write = this->operation(operation.reads_back);
  if (--write.readers == 0) finish(write);
}

void RmaOracle::write_ended(RmaOperation& operation) {
  if (!landed(operation)) fail("complete before its bytes were there", operation);
  finish(operation);
}

/// Called when a write or its last reader has ended. If both have, the slots of the write are not needed any
/// more.
void RmaOracle::finish(RmaOperation& write) {
  if (write.forbidden || write.over || write.readers > 0) return;
  if (write.state != RmaState::succeeded && write.state != RmaState::failed) return;
  for (const RmaOperation::Range& range : write.ranges) {
    if (write.state == RmaState::succeeded) {
      range.region_watch->seal(range.offset);
    } else {
      range.region_watch->fail(range.offset);
    }
  }
  write.over = true;
}

void RmaOracle::read_ended(RmaOperation& operation, ConstBytes read) {
  RmaOperation* write = operation.reads_back == 0 ? nullptr : &this->operation(operation.reads_back);
  const bool known = write == nullptr || write->state == RmaState::succeeded;
  std::size_t from = 0;
  for (const RmaOperation::Range& range : operation.ranges) {
    const ConstBytes right = range.region_watch->at(range.offset, range.length);
    const ConstBytes here = read.subspan(from, range.length);
    if (known && !std::equal(right.begin(), right.end(), here.begin())) {
      fail("read with wrong bytes", operation);
    }
    from += range.length;
  }
  if (write != nullptr && --write->readers == 0) finish(*write);
}

/// A fenced operation begins only when every earlier operation to the same peer is complete.
void RmaOracle::check_fence(const RmaOperation& operation) {
  if (!operation.fenced) return;
  for (const MessageNumber number : lanes_[{operation.from, operation.to}].order) {
    if (number == operation.number) return;
    const RmaOperation& before = this->operation(number);
    if (before.from_incarnation == operation.from_incarnation && before.state == RmaState::under_way) {
      fail("a fence was passed by " + text(before), operation);
    }
  }
}

void RmaOracle::data_came(HostNumber host, std::uint32_t incarnation,
                          const protocol::Completion& completion) {
  const MessageNumber number = completion.data;
  if (number == 0 || number > operations_.size()) throw SafetyFailure("data of a write that never was");
  RmaOperation& operation = this->operation(number);
  const WatchedRegion::Shape& shape = operation.ranges.back().region_watch->shape();
  if (!operation.has_data || operation.verb != Verb::write || operation.forbidden) {
    fail("data came of a write that has none or is forbidden", operation);
  }
  if (operation.to != host || shape.incarnation != incarnation)
    fail("data came to another process", operation);
  if (operation.data_came) fail("data came twice", operation);
  operation.data_came = true;
  if (operation.state == RmaState::composed) fail("data came before it was sent", operation);
  if (!closed(operation) && operation.state != RmaState::failed && !landed(operation)) {
    fail("data came before the bytes were there", operation);
  }
}

void RmaOracle::message_came(const Message& message, std::size_t accepted_before) {
  Lane& lane = lanes_[{message.from, message.to}];
  for (; lane.judged < accepted_before; ++lane.judged) {
    const RmaOperation& operation = this->operation(lane.order[lane.judged]);
    const bool same_incarnations =
        operation.from_incarnation == message.from_incarnation &&
        operation.ranges.front().region_watch->shape().incarnation == incarnations_.of(message.to);
    if (settled(operation) || !same_incarnations || landed(operation)) continue;
    if (incarnations_.error_permitted(message.from, message.to, operation.started)) continue;
    fail("a message overtook it", operation);
  }
}

void RmaOracle::check_complete() {
  for (const RmaOperation& operation : operations_) {
    if (operation.state == RmaState::under_way) {
      throw LivenessFailure("a remote operation never ended: " + text(operation));
    }
    const bool to_land = operation.state == RmaState::silent || operation.state == RmaState::succeeded;
    if (!to_land || operation.verb != Verb::write || operation.forbidden || closed(operation)) continue;
    if (incarnations_.error_permitted(operation.from, operation.to, operation.started)) continue;
    if (!landed(operation)) fail("a remote write was lost", operation);
    if (operation.has_data && !operation.data_came) fail("the data of a remote write was lost", operation);
  }
  for (const WatchedRegion& region_watch : regions_) {
    const std::string wrong = region_watch.violation();
    if (wrong.empty()) continue;
    throw SafetyFailure("region " + std::to_string(region_watch.shape().key) + " of host " +
                        std::to_string(region_watch.shape().host) + " was " + wrong);
  }
}

std::string RmaOracle::unfinished() const {
  std::size_t count = 0;
  std::string shown;
  for (const RmaOperation& operation : operations_) {
    if (operation.state != RmaState::under_way) continue;
    if (count++ == 0) shown = "; " + text(operation);
  }
  return std::to_string(count) + " remote operations" + shown;
}

}  // namespace cluster::sim
