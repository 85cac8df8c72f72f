// One schedule on its way: which of its actions may begin. What goes to other members is handed to the caller,
// which says when it is done; combinations and copies are done here.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "collective/schedule.h"

namespace cluster::collective {

class ScheduleRun {
 public:
  explicit ScheduleRun(Schedule schedule) : schedule_(std::move(schedule)) { ready_.reserve(size()); }

  /// Calls issue(step, action) for each send, spread and receive that may begin. Where issue() finds no memory, it is called
  /// for that one again by resume().
  template <typename Issue>
  void begin(Issue&& issue) {
    for (Step step = 0; step < schedule_.actions().size(); ++step) {
      if (schedule_.actions()[step].awaited == 0) ready_.push_back(step);
    }
    proceed(issue);
  }
  /// One of those is done.
  template <typename Issue>
  void done(Step step, Issue&& issue) {
    finish(step);
    proceed(issue);
  }
  template <typename Issue>
  void resume(Issue&& issue) {
    proceed(issue);
  }
  bool finished() const { return done_ == schedule_.actions().size(); }
  std::size_t size() const { return schedule_.actions().size(); }
  const Action& action(Step step) const { return schedule_.actions()[step]; }

 private:
  /// Those that come after a step that is done may be ready.
  void finish(Step step);
  void perform(const Action& action) const;

  /// In the order in which they became ready: messages of one number leave in the order of the schedule.
  template <typename Issue>
  void proceed(Issue& issue) {
    for (; next_ready_ < ready_.size(); ++next_ready_) {
      const Step step = ready_[next_ready_];
      const Action& action = schedule_.actions()[step];
      if (is_message(action.kind)) {
        issue(step, action);
      } else {
        perform(action);
        finish(step);
      }
    }
  }

  Schedule schedule_;
  std::vector<Step> ready_;  ///< so far; each step once
  std::size_t next_ready_ = 0;
  std::size_t done_ = 0;
};

}  // namespace cluster::collective
