#include "group/pace.h"

namespace cluster::group {

bool Pace::queue_stands() const {
  if (train_.shortest == Duration::max()) return false;
  const Duration least = shortest_.get();
  return train_.shortest - least > std::max(kQueue, least / 2);
}

/// Returns true if the pace limited the speed of the last train: enough frames of the train waited only for
/// the pace, and were sent about as fast as the pace allows.
bool Pace::holds_back(std::int64_t frames) const {
  return train_.followed * 4 >= frames && train_.busy * 4 <= interval() * train_.followed * 5;
}

void Pace::judge(std::uint64_t reached, std::uint64_t sent, std::uint64_t missed) {
  const auto frames = static_cast<std::int64_t>(reached - train_.first);
  const auto lost = std::min(static_cast<std::int64_t>(missed), frames);
  if (missed * kShareTolerated > reached - train_.first) {
    full_ = within(interval() * (frames + lost) / frames);
    set_interval(within(full_ * 17 / 16));
    counts_from_ = sent;
    hold_ = kHoldTrains;
    seeking_ = false;
  } else if (missed > 0 && queue_stands()) {
    set_interval(within(std::max(interval(), std::min(interval() * 9 / 8, full_ * 2))));
    seeking_ = false;
  } else if (hold_ > 0) {
    if (reached > counts_from_) --hold_;
  } else if (holds_back(frames)) {
    set_interval(within(seeking_ ? interval() * 3 / 4 : interval() * 15 / 16));
    full_ = std::min(full_, interval());
  }
  train_ = {.first = reached};
}

void Pace::on_silence() {
  full_ = within(interval() * 2);
  set_interval(full_);
  hold_ = 0;
  seeking_ = true;
}

}  // namespace cluster::group
