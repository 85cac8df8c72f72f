#include "group/message_progress.h"

namespace cluster::group {

void MessageProgress::reserve() {
  if (uncut_.free() == 0) uncut_.grow();
  while (under_way_.free() <= uncut_.size()) under_way_.grow();
  while (finished_.free() <= under_way_.size() + uncut_.size()) finished_.grow();
}

void MessageProgress::cut(std::uint64_t end) {
  const auto [token, until] = uncut_.front();
  uncut_.pop_front();
  if (until == Until::copied) {
    finished_.push_back(FinishedMessage{token, Status::ok, {}});
  } else {
    under_way_.push_back(UnderWay{token, end, until});
  }
}

void MessageProgress::fail(const Listener& listener, Status why) {
  for (std::size_t i = 0; i < under_way_.size(); ++i) {
    UnderWay& message = under_way_[i];
    if (message.status != Status::ok || message.end <= listener.arrived) continue;
    message.status = why;
    message.culprit = listener.name;
  }
}

void MessageProgress::abandon(Status why) {
  for (; !under_way_.empty(); under_way_.pop_front())
    finished_.push_back(FinishedMessage{under_way_.front().token, why, {}});
  for (; !uncut_.empty(); uncut_.pop_front())
    finished_.push_back(FinishedMessage{uncut_.front().first, why, {}});
}

void MessageProgress::advance(std::uint64_t arrived, std::uint64_t delivered) {
  while (!under_way_.empty()) {
    const UnderWay& message = under_way_.front();
    if ((message.until == Until::delivered ? delivered : arrived) < message.end) return;
    finished_.push_back(FinishedMessage{message.token, message.status, message.culprit});
    under_way_.pop_front();
  }
}

}  // namespace cluster::group
