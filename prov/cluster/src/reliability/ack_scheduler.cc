#include "reliability/ack_scheduler.h"

#include <algorithm>

namespace cluster::reliability {

void AckScheduler::on_frame(Time now, Time at, TransmissionNumber transmission, Urgency urgency,
                            std::size_t count) {
  if (!any_frame_ || transmission.after(largest_received_)) {
    largest_received_ = transmission;
    largest_received_at_ = at;
  }
  any_frame_ = true;
  frames_ += static_cast<unsigned>(count);
  awaited_ |= urgency == Urgency::soon;
  if (urgency == Urgency::soon && !replies_soon_) urgency = Urgency::now;
  Duration wait = urgency == Urgency::soon ? std::min(kReplyWait, delay_) : delay_;
  if (urgency == Urgency::now || frames_ >= kFramesMax) wait = Duration::zero();
  due_ = std::min(due_, now + wait);
}

void AckScheduler::on_ack_sent(Time now, bool bare) {
  if (awaited_) {
    replies_soon_ = !bare && now <= due_;
    if (bare) reply_grace_until_ = now + kReplyGrace;
  } else if (!bare && now <= reply_grace_until_) {
    replies_soon_ = true;
  }
  awaited_ = false;
  due_ = kNever;
  last_sent_at_ = now;
  frames_ = 0;
}

}  // namespace cluster::reliability
