#include "group/pace.h"

namespace cluster::group {

void Pace::on_arrival(Time at, std::uint64_t reached) {
  if (!train_.begun) {
    train_ = {true, at, reached, 0};
    return;
  }
  const std::uint64_t count = reached - train_.first;
  if (count < (seeking_ ? kTrainFirst : kTrain) || at <= train_.begin) return;
  // Those that were lost and came again have not come through the port at their pace.
  const auto came = static_cast<std::int64_t>(count - std::min<std::uint64_t>(train_.lost, count - 1));
  const Duration measured = (at - train_.begin) / came;
  // What was measured is inexact: reports take a while, and a burst of the pace before is in it. Without a loss it is not
  // believed at once: members that wait for a processor look like a slow port.
  const bool late = measured > (seeking_ ? interval_ * 3 / 2 : interval_ * 9 / 8);
  if (late) {
    const bool sure = seeking_ || train_.lost > 0;
    found_ = within(sure ? measured : std::min(measured, interval_ * 9 / 8));
    interval_ = within(sure ? found_ * 9 / 8 : found_ * 33 / 32);
    if (sure) hold_ = kHoldTrains;
    seeking_ = false;
    draining_ = true;
  } else if (draining_) {
    interval_ = found_;
    draining_ = false;
  } else if (hold_ > 0) {
    --hold_;
  } else {
    found_ = interval_ = within(seeking_ ? interval_ / 2 : interval_ * 10 / 11);
  }
  train_ = {true, at, reached, 0};
}

void Pace::on_silence() {
  found_ = interval_ = within(interval_ * 2);
  draining_ = false;
  end_train();
}

}  // namespace cluster::group
