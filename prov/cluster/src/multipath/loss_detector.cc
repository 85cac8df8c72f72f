#include "multipath/loss_detector.h"

#include <algorithm>

namespace cluster::multipath {

void LossDetector::sent(Sequence transmission, Sequence sequence, Time now) {
  const Transmission record{transmission, sequence, now};
  const std::size_t count = transmissions_.size();
  // A frame sent twice in a row (a timeout's only repair) needs no memory of the first time: so a
  // long silence costs nothing.
  if (count > 0 && transmissions_[count - 1].sequence == sequence) {
    transmissions_[count - 1] = record;
  } else {
    transmissions_.push_back(record);
  }
}

std::optional<std::size_t> LossDetector::find(Sequence number) const {
  std::size_t low = 0;
  std::size_t high = transmissions_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (transmissions_[middle].number.before(number)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == transmissions_.size() || transmissions_[low].number != number) return std::nullopt;
  return low;
}

std::optional<Time> LossDetector::newest_arrived(Sequence newest, Sequence known_end) {
  if (any_arrived_ && newest.before(newest_)) return std::nullopt;
  const bool news = !any_arrived_ || newest.after(newest_);
  known_end_ = known_end;
  if (!news) return std::nullopt;
  any_arrived_ = true;
  newest_ = newest;
  const std::optional<std::size_t> index = find(newest);
  if (!index) return std::nullopt;
  newest_sent_at_ = transmissions_[*index].sent_at;
  return newest_sent_at_;
}

void LossDetector::arrived(Sequence sequence, const reliability::Flight& flight,
                           const RttEstimator& reply_time) {
  // Only a frame that was sent once shows for certain which sending arrived late, and only a word
  // that covered it shows that it was not there before.
  if (!any_arrived_ || flight.sendings != 1 || !sequence.before(known_end_)) return;
  if (!flight.transmission.before(newest_) || flight.sent_at >= newest_sent_at_) return;
  const Duration overtaken_by = newest_sent_at_ - flight.sent_at;
  const Duration wanted = overtaken_by + overtaken_by / 4;
  if (wanted > reorder_window(reply_time)) widened_ = wanted;
}

void LossDetector::on_spurious_retransmits(Time now, const RttEstimator& reply_time) {
  if (now < widen_at_) return;
  widened_ = reorder_window(reply_time) + reply_time.smoothed() / 4;
  widen_at_ = now + reply_time.smoothed();
  shrink_at_ = widen_at_;
}

Duration LossDetector::reorder_window(const RttEstimator& reply_time) const {
  return std::clamp(widened_, reply_time.smoothed() / 4, kReorderWindowMax * reply_time.smoothed());
}

void LossDetector::shrink(Time now, const RttEstimator& reply_time) {
  if (now < shrink_at_) return;
  widened_ = reorder_window(reply_time);
  widened_ -= widened_ / kReorderWindowDecay;
  shrink_at_ = now + reply_time.smoothed();
}

Duration LossDetector::patience(std::int32_t overtaken_by, const RttEstimator& reply_time) const {
  if (!reply_time.measured()) return RttEstimator::kRtoInitial;
  const Duration certain = std::max(reply_time.smoothed(), reply_time.latest()) + reorder_window(reply_time);
  return overtaken_by > kPacketThreshold ? certain : certain + reply_time.smoothed();
}

std::size_t LossDetector::detect(Time now, const RttEstimator& reply_time, reliability::SendWindow& frames) {
  std::size_t lost = 0;
  deadline_ = kNever;
  shrink(now, reply_time);
  forget_settled(frames);
  std::size_t i = 0;
  while (any_arrived_ && i < transmissions_.size()) {
    const Transmission record = transmissions_[i];
    if (!record.number.before(newest_)) break;
    bool settled = !frames.is_in_flight(record.sequence, record.number);
    if (!settled && record.sequence.before(known_end_)) {
      const Time overdue = record.sent_at + patience(newest_ - record.number, reply_time);
      if (now < overdue) {
        deadline_ = overdue;
        break;
      }
      frames.mark_lost(record.sequence);
      ++lost;
      settled = true;
    }
    if (settled && i == 0) {
      transmissions_.pop_front();
    } else {
      ++i;
    }
  }
  return lost;
}

std::size_t LossDetector::give_up(reliability::SendWindow& frames) {
  std::size_t lost = 0;
  for (; !transmissions_.empty(); transmissions_.pop_front()) {
    const Transmission record = transmissions_.front();
    if (!frames.is_in_flight(record.sequence, record.number)) continue;
    frames.mark_lost(record.sequence);
    ++lost;
  }
  deadline_ = kNever;
  return lost;
}

/// A peer that acknowledges without ever naming a newer arrival must not fill our memory.
void LossDetector::forget_settled(const reliability::SendWindow& frames) {
  while (transmissions_.size() > kTransmissionsKept + 2 * frames.outstanding() &&
         !frames.is_in_flight(transmissions_.front().sequence, transmissions_.front().number)) {
    transmissions_.pop_front();
  }
}

bool LossDetector::remembers(Sequence transmission, Sequence sequence) const {
  const std::optional<std::size_t> index = find(transmission);
  return index && transmissions_[*index].sequence == sequence;
}

}  // namespace cluster::multipath
