#include "sim/remote_oracle.h"

#include <algorithm>

namespace cluster::sim {

using State = RemoteOperation::State;
using Verb = RemoteOperation::Verb;

std::string RemoteOracle::text(const RemoteOperation& operation) {
  std::string text = std::string(operation.verb == Verb::put ? "remote write " : "remote read ") +
                     std::to_string(operation.number) + " from host " + std::to_string(operation.from) +
                     " (life " + std::to_string(operation.from_life) + ") to host " +
                     std::to_string(operation.to) + ", length " + std::to_string(operation.length) +
                     (operation.forbidden ? ", forbidden" : "") + ", state " +
                     std::to_string(static_cast<int>(operation.state));
  for (const RemoteOperation::Range& range : operation.ranges) {
    text += ", " + std::to_string(range.length) + " at " + std::to_string(range.offset) + " of region " +
            std::to_string(range.exposure->shape().key);
  }
  return text;
}

void RemoteOracle::fail(const std::string& what, const RemoteOperation& operation) {
  throw SafetyFailure(what + ": " + text(operation));
}

Exposure& RemoteOracle::expose(const Exposure::Shape& shape) { return exposures_.emplace_back(shape); }

std::vector<Exposure*> RemoteOracle::exposed(HostNumber host) {
  std::vector<Exposure*> found;
  for (Exposure& exposure : exposures_) {
    const Exposure::Shape& shape = exposure.shape();
    if (shape.host == host && shape.life == lives_.of(host) && exposure.open()) found.push_back(&exposure);
  }
  return found;
}

void RemoteOracle::close(Exposure& exposure) {
  if (const std::string wrong = exposure.complaint(); !wrong.empty()) {
    throw SafetyFailure("region " + std::to_string(exposure.shape().key) + " of host " +
                        std::to_string(exposure.shape().host) + " was " + wrong);
  }
  exposure.close();
}

void RemoteOracle::life_ends(HostNumber host) {
  for (Exposure* exposure : exposed(host)) close(*exposure);
  for (RemoteOperation& operation : operations_) {
    const bool its_own = operation.from == host && operation.from_life == lives_.of(host);
    const bool over = operation.state == State::succeeded || operation.state == State::failed;
    if (its_own && !over) operation.state = State::abandoned;
  }
}

RemoteOperation& RemoteOracle::compose(RemoteOperation shape) {
  shape.number = operations_.size() + 1;
  shape.from_life = lives_.of(shape.from);
  std::size_t from = 0;
  for (const RemoteOperation::Range& range : shape.ranges) {
    if (shape.verb == Verb::put && !shape.forbidden) {
      range.exposure->expect(range.offset, kRemoteContent | shape.number, from);
    }
    from += range.length;
  }
  return operations_.emplace_back(std::move(shape));
}

void RemoteOracle::accepted(MessageNumber number) {
  RemoteOperation& operation = this->operation(number);
  operation.begun = lives_.begin(operation.from, operation.to);
  look_after_silent();
  operation.state = operation.reported ? State::under_way : State::silent;
  if (!operation.reported) silent_.push_back(number);
  lanes_[lane(operation.from, operation.to)].order.push_back(number);
  if (operation.reads_back != 0) ++this->operation(operation.reads_back).readers;
}

/// What was not to be reported is over once it can be seen.
void RemoteOracle::look_after_silent() {
  std::erase_if(silent_, [this](MessageNumber number) {
    RemoteOperation& put = operation(number);
    if (put.state != State::silent || put.forbidden) return true;
    if (!landed(put) || (put.has_data && !put.data_came)) return false;
    for (const RemoteOperation::Range& range : put.ranges) range.exposure->seal(range.offset);
    return put.over = true;
  });
}

void RemoteOracle::not_accepted(MessageNumber number) {
  RemoteOperation& operation = this->operation(number);
  operation.state = State::failed;
  if (operation.verb != Verb::put || operation.forbidden) return;
  for (const RemoteOperation::Range& range : operation.ranges) range.exposure->disclaim(range.offset);
}

bool RemoteOracle::landed(const RemoteOperation& operation) const {
  return operation.over ||
         std::all_of(operation.ranges.begin(), operation.ranges.end(),
                     [](const auto& range) { return range.exposure->landed(range.offset); });
}

bool RemoteOracle::closed(const RemoteOperation& operation) const {
  return std::any_of(operation.ranges.begin(), operation.ranges.end(),
                     [](const auto& range) { return !range.exposure->open(); });
}

/// True if nothing more is to be expected of it.
bool RemoteOracle::settled(const RemoteOperation& operation) const {
  return operation.verb != Verb::put || operation.forbidden || closed(operation) ||
         (operation.state != State::under_way && operation.state != State::silent);
}

void RemoteOracle::ended(const protocol::Completion& completion, MessageNumber number, ConstBytes read) {
  using Kind = protocol::Completion::Kind;
  if (number == 0 || number > operations_.size())
    throw SafetyFailure("a remote operation ended that never was");
  RemoteOperation& operation = this->operation(number);
  const bool expected = operation.state == State::under_way ||
                        (operation.state == State::silent && completion.fault != Fault::none);
  if (!expected) fail(std::string("ended twice (") + describe(completion.fault) + ")", operation);
  if (completion.kind != (operation.verb == Verb::put ? Kind::write : Kind::read)) {
    fail("ended as another", operation);
  }
  if (completion.fault == Fault::none) {
    if (operation.forbidden) fail("a forbidden access succeeded", operation);
    operation.state = State::succeeded;
    ++succeeded_;
    check_fence(operation);
    return operation.verb == Verb::put ? put_ended(operation) : get_ended(operation, read);
  }
  operation.state = State::failed;
  const bool rightly = completion.fault == Fault::access && (operation.forbidden || closed(operation));
  if (!rightly && !lives_.excused(operation.from, operation.to, operation.begun)) {
    fail(std::string("failed without cause (") + describe(completion.fault) + ")", operation);
  }
  if (operation.verb == Verb::put) return finish(operation);
  if (operation.reads_back == 0) return;
  RemoteOperation& put = this->operation(operation.reads_back);
  if (--put.readers == 0) finish(put);
}

void RemoteOracle::put_ended(RemoteOperation& operation) {
  if (!landed(operation)) fail("complete before its bytes were there", operation);
  finish(operation);
}

/// Nobody looks at the slots of a write any more.
void RemoteOracle::finish(RemoteOperation& put) {
  if (put.forbidden || put.over || put.readers > 0) return;
  if (put.state != State::succeeded && put.state != State::failed) return;
  for (const RemoteOperation::Range& range : put.ranges) {
    if (put.state == State::succeeded) {
      range.exposure->seal(range.offset);
    } else {
      range.exposure->fail(range.offset);
    }
  }
  put.over = true;
}

void RemoteOracle::get_ended(RemoteOperation& operation, ConstBytes read) {
  RemoteOperation* put = operation.reads_back == 0 ? nullptr : &this->operation(operation.reads_back);
  const bool known = put == nullptr || put->state == State::succeeded;
  std::size_t from = 0;
  for (const RemoteOperation::Range& range : operation.ranges) {
    const ConstBytes right = range.exposure->at(range.offset, range.length);
    const ConstBytes here = read.subspan(from, range.length);
    if (known && !std::equal(right.begin(), right.end(), here.begin())) {
      fail("read with wrong bytes", operation);
    }
    from += range.length;
  }
  if (put != nullptr && --put->readers == 0) finish(*put);
}

/// A fenced operation begins when everything before it to this peer is complete.
void RemoteOracle::check_fence(const RemoteOperation& operation) {
  if (!operation.fenced) return;
  for (const MessageNumber number : lanes_[lane(operation.from, operation.to)].order) {
    if (number == operation.number) return;
    const RemoteOperation& before = this->operation(number);
    if (before.from_life == operation.from_life && before.state == State::under_way) {
      fail("a fence was passed by " + text(before), operation);
    }
  }
}

void RemoteOracle::data_came(HostNumber host, std::uint32_t life, const protocol::Completion& completion) {
  const MessageNumber number = completion.data;
  if (number == 0 || number > operations_.size()) throw SafetyFailure("data of a write that never was");
  RemoteOperation& operation = this->operation(number);
  const Exposure::Shape& shape = operation.ranges.back().exposure->shape();
  if (!operation.has_data || operation.verb != Verb::put || operation.forbidden) {
    fail("data came of a write that has none or is forbidden", operation);
  }
  if (operation.to != host || shape.life != life) fail("data came to another process", operation);
  if (operation.data_came) fail("data came twice", operation);
  operation.data_came = true;
  if (operation.state == State::composed) fail("data came before it was sent", operation);
  if (!closed(operation) && operation.state != State::failed && !landed(operation)) {
    fail("data came before the bytes were there", operation);
  }
}

void RemoteOracle::message_came(const Message& message, std::size_t accepted_before) {
  Lane& lane = lanes_[RemoteOracle::lane(message.from, message.to)];
  for (; lane.judged < accepted_before; ++lane.judged) {
    const RemoteOperation& operation = this->operation(lane.order[lane.judged]);
    const bool same_lives = operation.from_life == message.from_life &&
                            operation.ranges.front().exposure->shape().life == lives_.of(message.to);
    if (settled(operation) || !same_lives || landed(operation)) continue;
    if (lives_.excused(message.from, message.to, operation.begun)) continue;
    fail("a message overtook it", operation);
  }
}

void RemoteOracle::check_complete() {
  for (const RemoteOperation& operation : operations_) {
    if (operation.state == State::under_way) {
      throw LivenessFailure("a remote operation never ended: " + text(operation));
    }
    const bool to_land = operation.state == State::silent || operation.state == State::succeeded;
    if (!to_land || operation.verb != Verb::put || operation.forbidden || closed(operation)) continue;
    if (lives_.excused(operation.from, operation.to, operation.begun)) continue;
    if (!landed(operation)) fail("a remote write was lost", operation);
    if (operation.has_data && !operation.data_came) fail("the data of a remote write was lost", operation);
  }
  for (const Exposure& exposure : exposures_) {
    const std::string wrong = exposure.complaint();
    if (wrong.empty()) continue;
    throw SafetyFailure("region " + std::to_string(exposure.shape().key) + " of host " +
                        std::to_string(exposure.shape().host) + " was " + wrong);
  }
}

std::string RemoteOracle::unfinished() const {
  std::size_t count = 0;
  std::string shown;
  for (const RemoteOperation& operation : operations_) {
    if (operation.state != State::under_way) continue;
    if (count++ == 0) shown = "; " + text(operation);
  }
  return std::to_string(count) + " remote operations" + shown;
}

}  // namespace cluster::sim
