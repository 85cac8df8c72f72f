#include "group/pace.h"

namespace cluster::group {

bool Pace::queue_stands() const {
  if (train_.shortest == Duration::max()) return false;
  const Duration least = shortest_.get();
  return train_.shortest - least > std::max(kQueue, least / 2);
}

/// True if frames left about as fast as the pace lets them, and enough of them waited for it.
bool Pace::holds_back(std::int64_t frames) const {
  return train_.followed * 4 >= frames && train_.busy * 4 <= interval_ * train_.followed * 5;
}

void Pace::judge(std::uint64_t reached, std::uint64_t sent, std::uint64_t missed) {
  const auto frames = static_cast<std::int64_t>(reached - train_.first);
  const auto lost = std::min(static_cast<std::int64_t>(missed), frames);
  if (missed * kShareTolerated > reached - train_.first) {
    full_ = within(interval_ * (frames + lost) / frames);
    interval_ = within(full_ * 17 / 16);
    counts_from_ = sent;
    hold_ = kHoldTrains;
    seeking_ = false;
  } else if (missed > 0 && queue_stands()) {
    interval_ = within(std::max(interval_, std::min(interval_ * 9 / 8, full_ * 2)));
    seeking_ = false;
  } else if (hold_ > 0) {
    if (reached > counts_from_) --hold_;
  } else if (holds_back(frames)) {
    interval_ = within(seeking_ ? interval_ * 3 / 4 : interval_ * 15 / 16);
    full_ = std::min(full_, interval_);
  }
  train_ = {.first = reached};
}

void Pace::on_silence() {
  full_ = interval_ = within(interval_ * 2);
  hold_ = 0;
  seeking_ = true;
}

}  // namespace cluster::group
