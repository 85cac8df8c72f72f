#include "collective/schedule.h"

#include <cstring>

#include "protocol/atomic_arithmetic.h"

namespace cluster::collective {

Step Schedule::add(const Action& action, After after) {
  const auto step = static_cast<Step>(actions_.size());
  actions_.push_back(action);
  for (const Step before : after) depend(step, before);
  return step;
}

void Schedule::depend(Step step, Step before) {
  if (before == kStart) return;
  ++actions_[step].awaited;
  edges_.push_back({step, actions_[before].first_edge});
  actions_[before].first_edge = static_cast<Step>(edges_.size() - 1);
}

Step Schedule::send(Member to, unsigned number, ConstBytes bytes, After after) {
  return add({.kind = Action::Kind::send,
              .number = static_cast<std::uint16_t>(number & kNumberMax),
              .member = to,
              .source = bytes},
             after);
}

Step Schedule::spread(unsigned number, ConstBytes bytes, After after) {
  return add({.kind = Action::Kind::spread,
              .number = static_cast<std::uint16_t>(number & kNumberMax),
              .source = bytes},
             after);
}

Step Schedule::receive(Member from, unsigned number, Bytes bytes, After after) {
  return add({.kind = Action::Kind::receive,
              .number = static_cast<std::uint16_t>(number & kNumberMax),
              .member = from,
              .target = bytes},
             after);
}

Step Schedule::combine(Bytes target, ConstBytes source, After after) {
  return add({.kind = Action::Kind::combine, .target = target, .source = source}, after);
}

Step Schedule::copy(Bytes target, ConstBytes source, After after) {
  return add({.kind = Action::Kind::copy, .target = target, .source = source}, after);
}

Step Schedule::join(const std::vector<Step>& steps) {
  if (steps.size() == 1) return steps.front();
  const Step step = add({}, {});
  for (const Step before : steps) depend(step, before);
  return step;
}

Step Schedule::join(After steps) { return add({}, steps); }

Bytes Schedule::scratch(std::size_t size) {
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
  return {scratch_.back().get(), size};
}

void ScheduleRun::finish(Step step) {
  ++done_;
  for (Step edge = schedule_.actions()[step].first_edge; edge != kStart;
       edge = schedule_.edges()[edge].next) {
    const Step after = schedule_.edges()[edge].to;
    if (--schedule_.actions()[after].awaited == 0) ready_.push_back(after);
  }
}

void ScheduleRun::perform(const Action& action) const {
  if (action.source.empty()) return;
  if (action.kind == Action::Kind::copy) {
    std::memmove(action.target.data(), action.source.data(), action.source.size());
  } else if (action.kind == Action::Kind::combine) {
    const Reduction& reduction = schedule_.reduction();
    protocol::combine(reduction.op, reduction.type, action.target.data(), action.source);
  }
}

}  // namespace cluster::collective
