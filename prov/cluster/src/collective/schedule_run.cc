#include "collective/schedule_run.h"

#include <cstring>

#include "protocol/atomic_arithmetic.h"

namespace cluster::collective {

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
