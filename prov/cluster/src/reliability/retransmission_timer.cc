#include "reliability/retransmission_timer.h"

#include <algorithm>

namespace cluster::reliability {

Duration RetransmissionTimer::interval(const multipath::RttEstimator& reply_time) const {
  if (tlp_next(reply_time)) {
    const Duration least = reply_time.established() ? kTlpMin : multipath::RttEstimator::kRtoInitial;
    return std::max({2 * reply_time.smoothed(), reply_time.rto_unclamped(), least}) + ack_delay_;
  }
  const Duration rto = reply_time.rto();
  const bool early = backoff_ < kBackoffMax;
  const Duration usual = early ? std::max(rto, kBackedOffMax) : multipath::RttEstimator::kRtoMax;
  const Duration most = reply_time.measured() ? usual : kCallMax;
  return std::min(rto * (1u << std::min(backoff_, kDoublingsMax)), most);
}

Time RetransmissionTimer::deadline(const multipath::RttEstimator& reply_time) const {
  if (!running_) return kNever;
  return std::min(due(reply_time), expedited_at_);
}

RetransmissionTimer::Event RetransmissionTimer::on_timer(Time now,
                                                         const multipath::RttEstimator& reply_time) {
  if (!running_) return Event::none;
  if (now >= due(reply_time)) {
    const bool tlp = tlp_next(reply_time);
    tlp_sent_ = true;
    if (!tlp) {
      backoff_ = std::min(backoff_ + 1, kBackoffMax);
      ++unanswered_;
    }
    restart(now);
    return tlp ? Event::tlp : Event::rto;
  }
  if (now < expedited_at_) return Event::none;
  expedited_at_ = kNever;
  return Event::tlp;
}

}  // namespace cluster::reliability
