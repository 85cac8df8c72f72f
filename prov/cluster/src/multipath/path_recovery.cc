#include "multipath/path_recovery.h"

#include <algorithm>

namespace cluster::multipath {

std::size_t PathRecovery::allowance(Time now) const {
  const std::size_t window = congestion_.window();
  const std::size_t left = window - std::min(window, losses_.in_flight());
  return network_rtt_.measured() ? std::min(left, pacer_.allowance(now)) : left;
}

/// Sets the pace. In steady state, the pacer does not delay any frame that acknowledgements allow. Its rate
/// is a quarter higher than one window per round trip. A quarter of the window, but at least kBurstMin
/// frames, may be sent at once. In slow start the rate is twice as high, because the pacer must not limit the
/// growth of the window.
void PathRecovery::update_pace() {
  if (!network_rtt_.measured()) return;
  const std::size_t window = congestion_.window();
  const Duration round_trip = network_rtt_.smoothed() / (congestion_.in_slow_start() ? 2 : 1);
  pacer_.set(round_trip * 4 / 5 / static_cast<std::int64_t>(window), std::max(kBurstMin, window / 4));
}

Time PathRecovery::paced_until(Time now) const {
  const Time at = pacer_.ready_at(kQuantum);
  return at > now ? at : kNever;
}

void PathRecovery::on_retransmit(TransmissionNumber transmission) {
  losses_.on_superseded(transmission);
  congestion_.on_retransmit();
}

void PathRecovery::on_frame_acked(const AckedFrame& frame) {
  const std::size_t before = losses_.in_flight();
  losses_.on_acked(frame, reply_time_);
  acked_.frames += frame.count;
  acked_.in_flight += before - losses_.in_flight();
  if (!frame.sent_once) return;  // this side does not know which transmission arrived
  const TransmissionNumber last = frame.transmission + static_cast<std::uint32_t>(frame.count - 1);
  if (acked_.largest && !last.after(*acked_.largest)) return;
  acked_.largest = last;
  acked_.largest_sent_at = frame.last_sent_at;
}

PathRecovery::Arrival PathRecovery::on_ack(Time now, const AckInfo& ack, const AckContext& context) {
  const bool sole = context.sole;
  const Acked acked = acked_;
  acked_ = {};
  const bool idle = acked.frames == 0 && losses_.in_flight() == 0;
  if (!sole && idle) return {};
  const bool named = sole || losses_.knows(ack.largest_acked);
  std::optional<TransmissionNumber> largest_acked = acked.largest;
  if (sole || (named && (!largest_acked || ack.largest_acked.after(*largest_acked))))
    largest_acked = ack.largest_acked;
  Arrival arrival;
  arrival.last_acked_sent_at = acked.largest_sent_at;
  if (largest_acked && (sole || !context.outdated)) {
    arrival.largest_acked_sent_at = losses_.on_largest_acked(*largest_acked, ack.known_end);
  } else if (!context.outdated) {
    losses_.set_known_end(ack.known_end);
  }
  const Samples samples = measure(now, ack, arrival.largest_acked_sent_at,
                                  named && largest_acked == ack.largest_acked, context.several);
  if (arrival.largest_acked_sent_at) {
    arrived_at_ = now;
    passed_at_ = kNever;
    arrival.last_acked_sent_at = std::max(arrival.last_acked_sent_at, *arrival.largest_acked_sent_at);
  }
  if (!sole && acked.frames == 0 && !arrival.largest_acked_sent_at) return arrival;
  const TransmissionNumber largest = sole ? ack.largest_acked : losses_.largest_acked();
  congestion_.on_ack(now, {acked.frames, losses_.in_flight() + acked.in_flight, largest, ack.next,
                           samples.network, samples.reply});
  update_pace();
  return arrival;
}

void PathRecovery::on_spurious_retransmits(Time now, std::size_t frames, bool probes) {
  congestion_.on_spurious_retransmits(frames);
  update_pace();
  if (!probes) losses_.on_spurious_loss(now, reply_time_);
}

PathRecovery::Samples PathRecovery::measure(Time now, const AckInfo& ack, std::optional<Time> sent_at,
                                            bool exact, bool several) {
  Samples samples;
  if (!sent_at) return samples;
  if (exact) {
    samples.reply = now - *sent_at;
    if (ack.delay) samples.network = ack.arrived - *sent_at - *ack.delay;
    measured_at_ = now;
  } else if (now - measured_at_ > 4 * reply_time_.smoothed()) {
    // This sample includes the time for which the peer delayed its acknowledgement. Therefore it counts as a
    // network round trip only if that delay is short, or if there is no better sample yet.
    const bool prompt = ack.delay && *ack.delay < CongestionController::kTargetDelay;
    samples.reply = now - *sent_at;
    if (prompt || !network_rtt_.measured()) samples.network = ack.arrived - *sent_at;
  }
  // A time that is not positive shows that somebody has set the system time.
  if (samples.network && *samples.network <= Duration::zero()) samples.network.reset();
  if (!samples.reply) return samples;
  // If a slow path is tried again after a while and has become faster, its old samples no longer count.
  const bool stale = several && now > sampled_at_ + kRttStaleAfter;
  if (stale && *samples.reply < reply_time_.smoothed()) reply_time_.restart();
  if (stale && samples.network && *samples.network < network_rtt_.smoothed()) network_rtt_.restart();
  sample(now, *samples.reply, samples.network);
  if (samples.network) samples.network = network_rtt_.latest();
  return samples;
}

void PathRecovery::sample(Time now, Duration reply, std::optional<Duration> network) {
  sampled_at_ = now;
  reply_time_.sample(reply);
  if (network) network_rtt_.sample(*network);
}

void PathRecovery::on_passed(Time now, Time sent_at) {
  if (losses_.in_flight() != 0 && passed_at_ == kNever && sent_at > arrived_at_) passed_at_ = now;
}

std::size_t PathRecovery::detect_losses(Time now, std::vector<Sequence>& lost,
                                        std::optional<Sequence> pmtu_probe) {
  const std::size_t before = lost.size();
  losses_.detect(now, reply_time_, lost);
  const std::size_t overdue = lost.size() - before;
  if (overdue != 0) {
    const auto first = lost.end() - static_cast<std::ptrdiff_t>(overdue);
    const bool with_probe = pmtu_probe && std::find(first, lost.end(), *pmtu_probe) != lost.end();
    congestion_.on_lost(overdue - (with_probe ? 1 : 0));
  }
  if (losses_.in_flight() == 0) passed_at_ = kNever;
  return overdue;
}

void PathRecovery::take_back(std::vector<Sequence>& frames) {
  passed_at_ = kNever;
  losses_.mark_all_lost(frames);
}

void PathRecovery::on_persistent_timeout() {
  if (losses_.in_flight() == 0) return;
  congestion_.on_persistent_timeout();
  update_pace();
}

Time PathRecovery::fails_at(Duration least) const {
  if (passed_at_ == kNever) return kNever;
  return std::max(arrived_at_ + std::max(reply_time_.rto(), least), passed_at_ + reply_time_.smoothed());
}

void PathRecovery::copy_rtt(const PathRecovery& other) {
  if (reply_time_.measured()) return;
  network_rtt_ = other.network_rtt_;
  reply_time_ = other.reply_time_;
  update_pace();
}

}  // namespace cluster::multipath
