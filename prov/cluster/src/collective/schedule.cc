#include "collective/schedule.h"

#include <algorithm>
#include <cstring>

#include "protocol/atomic_arithmetic.h"

namespace cluster::collective {

Step Schedule::add(Action::Kind kind, unsigned number, Member member, Bytes target, ConstBytes source,
                   std::span<const Step> after) {
  const auto step = static_cast<Step>(actions_.size());
  actions_.push_back({.kind = kind,
                      .number = static_cast<std::uint16_t>(number & kNumberMax),
                      .member = member,
                      .target = target,
                      .source = source});
  for (const Step before : after) {
    if (before == kStart) continue;
    ++actions_[step].awaited;
    edges_.push_back({step, actions_[before].first_edge});
    actions_[before].first_edge = static_cast<Step>(edges_.size() - 1);
  }
  return step;
}

Bytes Schedule::scratch(std::size_t size) {
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
  return {scratch_.back().get(), size};
}

void ScheduleRun::finish(Step step) {
  ++done_;
  const std::size_t first = ready_.size();
  for (Step edge = schedule_.actions()[step].first_edge; edge != kStart;
       edge = schedule_.edges()[edge].next) {
    const Step after = schedule_.edges()[edge].to;
    if (--schedule_.actions()[after].awaited == 0) ready_.push_back(after);
  }
  // The newest edge comes first in the list. So the new ready actions are in the reverse of their order in
  // the schedule.
  std::reverse(ready_.begin() + static_cast<std::ptrdiff_t>(first), ready_.end());
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
