#include "reliability/retransmission_timer.h"

#include <algorithm>

namespace cluster::reliability {

void RetransmissionTimer::progress(Time now, bool outstanding) {
  running_ = outstanding;
  since_ = now;
  probed_ = false;
  backoff_ = 0;
  hurry_at_ = kNever;
}

Duration RetransmissionTimer::silence(const RoundTrip& round_trip) const {
  if (probing(round_trip)) {
    const Duration least = round_trip.familiar() ? kProbeMin : RoundTrip::kTimeoutUnmeasured;
    return std::max({2 * round_trip.smoothed(), round_trip.likely_longest(), least}) + ack_delay_;
  }
  return std::min(round_trip.timeout() * (1u << backoff_), RoundTrip::kTimeoutMax);
}

Time RetransmissionTimer::deadline(const RoundTrip& round_trip) const {
  if (!running_) return kNever;
  return std::min(since_ + silence(round_trip), hurry_at_);
}

RetransmissionTimer::Event RetransmissionTimer::on_time(Time now, const RoundTrip& round_trip) {
  if (!running_) return Event::none;
  if (now >= since_ + silence(round_trip)) {
    const bool probe = probing(round_trip);
    probed_ = true;
    if (!probe) backoff_ = std::min(backoff_ + 1, kBackoffMax);
    since_ = now;
    return probe ? Event::probe : Event::timeout;
  }
  if (now < hurry_at_) return Event::none;
  hurry_at_ = kNever;
  return Event::probe;
}

}  // namespace cluster::reliability
