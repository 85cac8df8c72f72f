#include "multipath/path_recovery.h"

#include <algorithm>

namespace cluster::multipath {

std::size_t PathRecovery::allowance(Time now) {
  const std::size_t window = congestion_.window();
  const std::size_t left = window - std::min(window, losses_.in_flight());
  if (!network_rtt_.measured()) return left;
  // While the window looks for its limit the pacer must not be what limits it.
  pacer_.pace(network_rtt_.smoothed() / (congestion_.in_slow_start() ? 2 : 1), window);
  return std::min(left, pacer_.allowance(now));
}

void PathRecovery::on_sent(Time now, Sequence transmission, Sequence sequence) {
  losses_.on_sent(transmission, sequence, now);
  if (losses_.in_flight() == 1) {
    heard_at_ = now;
    passed_at_ = kNever;
  }
  sent_at_ = now;
  pacer_.on_sent(now);
}

void PathRecovery::on_retransmit(Sequence transmission) {
  losses_.on_superseded(transmission);
  congestion_.on_retransmit();
}

void PathRecovery::on_frame_acked(const AckedFrame& frame) {
  const std::size_t before = losses_.in_flight();
  losses_.on_acked(frame, reply_rtt_);
  ++acked_.frames;
  acked_.in_flight += before - losses_.in_flight();
  if (!frame.sent_once) return;  // it is not known which transmission this was
  if (acked_.latest && !frame.transmission.after(*acked_.latest)) return;
  acked_.latest = frame.transmission;
  acked_.latest_sent_at = frame.sent_at;
}

PathRecovery::Arrival PathRecovery::on_ack(Time now, const AckInfo& ack, const AckContext& context) {
  const bool sole = context.sole;
  const Acked acked = acked_;
  acked_ = {};
  const bool idle = acked.frames == 0 && losses_.in_flight() == 0 && ack.spurious == 0;
  if (!sole && idle) return {};
  const bool named = sole || losses_.knows(ack.newest);
  std::optional<Sequence> newest = acked.latest;
  if (sole || (named && (!newest || ack.newest.after(*newest)))) newest = ack.newest;
  Arrival arrival;
  arrival.latest = acked.latest_sent_at;
  if (newest && (sole || !context.outdated)) {
    arrival.news = losses_.on_largest_acked(*newest, ack.known_end);
  } else if (!context.outdated) {
    losses_.set_known_end(ack.known_end);
  }
  const Samples samples = measure(now, ack, arrival.news, named && newest == ack.newest, context.several);
  if (arrival.news) {
    heard_at_ = now;
    passed_at_ = kNever;
    arrival.latest = std::max(arrival.latest, *arrival.news);
  }
  if (ack.spurious != 0) {
    congestion_.on_spurious_retransmits(ack.spurious);
    losses_.on_spurious_loss(now, reply_rtt_);
  }
  if (!sole && acked.frames == 0 && !arrival.news) return arrival;
  const Sequence upto = sole ? ack.newest : losses_.largest_acked();
  congestion_.on_ack(now, {acked.frames, losses_.in_flight() + acked.in_flight, upto, ack.next,
                           samples.network, samples.reply});
  return arrival;
}

PathRecovery::Samples PathRecovery::measure(Time now, const AckInfo& ack, std::optional<Time> sent_at,
                                            bool exact, bool several) {
  Samples samples;
  if (!sent_at) return samples;
  if (exact) {
    samples.reply = now - *sent_at;
    if (ack.delay) samples.network = ack.arrived - *sent_at - *ack.delay;
    measured_at_ = now;
  } else if (now - measured_at_ > 4 * reply_rtt_.smoothed()) {
    // What the peer took to acknowledge is in the sample: it says little of the network unless that was
    // short.
    const bool prompt = ack.delay && *ack.delay < CongestionController::kTargetDelay;
    samples.reply = now - *sent_at;
    if (prompt || !network_rtt_.measured()) samples.network = ack.arrived - *sent_at;
  }
  if (samples.network && *samples.network <= Duration::zero()) samples.network.reset();  // the clock was set
  if (!samples.reply) return samples;
  // A path that was slow, and is tried again after a while, is not judged by how it was.
  const bool stale = several && now > sampled_at_ + kRttStaleAfter;
  if (stale && *samples.reply < reply_rtt_.smoothed()) reply_rtt_.restart();
  if (stale && samples.network && *samples.network < network_rtt_.smoothed()) network_rtt_.restart();
  sample(now, *samples.reply, samples.network);
  if (samples.network) samples.network = network_rtt_.latest();
  return samples;
}

void PathRecovery::sample(Time now, Duration reply, std::optional<Duration> network) {
  sampled_at_ = now;
  reply_rtt_.sample(reply);
  if (!network) return;
  network_rtt_.sample(*network);
  min_rtt_.sample(now, network_rtt_.latest());
}

void PathRecovery::on_passed(Time now, Time sent_at) {
  if (losses_.in_flight() != 0 && passed_at_ == kNever && sent_at > heard_at_) passed_at_ = now;
}

std::size_t PathRecovery::detect_losses(Time now, std::vector<Sequence>& lost) {
  const std::size_t before = lost.size();
  losses_.detect(now, reply_rtt_, lost);
  const std::size_t overdue = lost.size() - before;
  if (overdue != 0) congestion_.on_lost(overdue);
  if (losses_.in_flight() == 0) passed_at_ = kNever;
  return overdue;
}

void PathRecovery::on_path_failed(std::vector<Sequence>& lost) {
  congestion_.on_persistent_timeout();
  passed_at_ = kNever;
  losses_.mark_all_lost(lost);
}

void PathRecovery::on_persistent_timeout() {
  if (losses_.in_flight() != 0) congestion_.on_persistent_timeout();
}

Time PathRecovery::silent_until(Duration least) const {
  if (passed_at_ == kNever) return kNever;
  return std::max(heard_at_ + std::max(reply_rtt_.rto(), least), passed_at_ + reply_rtt_.smoothed());
}

void PathRecovery::copy_rtt(const PathRecovery& other) {
  if (reply_rtt_.measured()) return;
  network_rtt_ = other.network_rtt_;
  reply_rtt_ = other.reply_rtt_;
}

}  // namespace cluster::multipath
