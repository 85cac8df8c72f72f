#include "reliability/ack_scheduler.h"

#include <algorithm>

namespace cluster::reliability {

void AckScheduler::arrived(Time now, Time at, Sequence transmission, bool ordered, Urgency urgency) {
  if (!anything_ || transmission.after(newest_)) {
    newest_ = transmission;
    newest_at_ = at;
  }
  anything_ = true;
  ++(ordered ? ordered_ : unordered_);
  awaited_ |= urgency == Urgency::soon;
  if (urgency == Urgency::soon && !answers_soon_) urgency = Urgency::now;
  Duration wait = urgency == Urgency::soon ? std::min(kReplyWait, delay_) : delay_;
  if (urgency == Urgency::now || ordered_ >= kOrderedMax || unordered_ >= kUnorderedMax) {
    wait = Duration::zero();
  }
  due_ = std::min(due_, now + wait);
}

void AckScheduler::sent(Time now, bool alone) {
  if (awaited_) {
    answers_soon_ = !alone && now <= due_;
    if (alone) answered_if_before_ = now + kReplyGrace;
  } else if (!alone && now <= answered_if_before_) {
    answers_soon_ = true;
  }
  awaited_ = false;
  due_ = kNever;
  said_at_ = now;
  ordered_ = unordered_ = 0;
}

}  // namespace cluster::reliability
