#include "multipath/loss_detector.h"

#include <algorithm>

namespace cluster::multipath {

void LossDetector::on_unusual_sent(Sequence sequence, TransmissionNumber transmission, Time now,
                                   std::size_t count) {
  const std::int32_t ahead = transmission - largest_acked_;
  if (in_flight_ == 0 && (ahead > kIdleDistanceMax || ahead <= 0)) {
    // While this path was idle, other paths have used so many transmission numbers that the numbers may wrap
    // around. The old numbers of this path would soon seem to be in the future.
    transmissions_.clear();
    largest_acked_ = transmission.previous();
    known_end_ = sequence;
  }
  const std::size_t known = transmissions_.size();
  in_flight_ += count;
  // If a frame is sent twice in a row, the second record replaces the first. Otherwise retransmissions to a
  // silent peer would take more and more memory.
  const bool repeated = known > 0 && transmissions_[known - 1].sequence == sequence;
  if (repeated) settle(transmissions_[known - 1]);
  Transmission& record = repeated ? transmissions_[known - 1] : transmissions_.push_back();
  record = {transmission, sequence, now};
  while (--count != 0) transmissions_.push_back() = {++transmission, ++sequence, now};
}

std::size_t LossDetector::search(TransmissionNumber number) const {
  const auto consecutive = static_cast<std::size_t>(number - transmissions_.front().number);
  std::size_t low = 0;
  std::size_t high = std::min(consecutive, transmissions_.size());
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const bool older = transmissions_[middle].number.before(number);
    (older ? low : high) = older ? middle + 1 : middle;
  }
  return low;
}

std::optional<std::size_t> LossDetector::find(TransmissionNumber number) const {
  const std::size_t index = position(number);
  if (index == transmissions_.size() || transmissions_[index].number != number) return std::nullopt;
  return index;
}

void LossDetector::on_superseded(TransmissionNumber transmission) {
  if (const std::optional<std::size_t> index = find(transmission)) settle(transmissions_[*index]);
}

void LossDetector::settle(Transmission& record) {
  in_flight_ -= record.settled ? 0 : 1;
  record.settled = true;
}

std::optional<Time> LossDetector::on_largest_acked(TransmissionNumber largest, Sequence known_end) {
  if (any_acked_ && largest.before(largest_acked_)) return std::nullopt;
  const bool news = !any_acked_ || largest.after(largest_acked_);
  known_end_ = known_end;
  if (!news) return std::nullopt;
  any_acked_ = true;
  largest_acked_ = largest;
  const std::optional<std::size_t> index = find(largest);
  if (!index) return std::nullopt;
  largest_sent_at_ = transmissions_[*index].sent_at;
  return largest_sent_at_;
}

/// Settles the transmissions of the frames, and widens the reorder window if they arrived late. Frames with
/// consecutive numbers have adjacent records. If several frames arrived late, the first of them was delayed
/// most.
void LossDetector::on_acked(const AckedFrame& frame, const RttEstimator& reply_time) {
  const TransmissionNumber end = frame.transmission + static_cast<std::uint32_t>(frame.count);
  const std::size_t size = transmissions_.size();
  for (std::size_t i = position(frame.transmission); i < size && transmissions_[i].number.before(end); ++i) {
    settle(transmissions_[i]);
  }
  // Two conditions make the delay certain. First, the frame was sent once, so it is known which transmission
  // arrived late. Second, an earlier acknowledgement said that the frame was still missing.
  if (!any_acked_ || !frame.sent_once || !frame.sequence.before(known_end_)) return;
  if (!frame.transmission.before(largest_acked_) || frame.sent_at >= largest_sent_at_) return;
  const Duration overtaken_by = largest_sent_at_ - frame.sent_at;
  const Duration wanted = overtaken_by + overtaken_by / 4;
  if (wanted > reorder_window(reply_time)) widened_ = wanted;
}

void LossDetector::on_spurious_loss(Time now, const RttEstimator& reply_time) {
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

Duration LossDetector::loss_delay(std::size_t overtaken_by, const RttEstimator& reply_time) const {
  if (!reply_time.measured()) return RttEstimator::kRtoInitial;
  const Duration certain = std::max(reply_time.smoothed(), reply_time.latest()) + reorder_window(reply_time);
  return overtaken_by > kPacketThreshold ? certain : certain + reply_time.smoothed();
}

void LossDetector::detect(Time now, const RttEstimator& reply_time, std::vector<Sequence>& lost) {
  deadline_ = kNever;
  shrink(now, reply_time);
  if (in_flight_ == 0 && transmissions_.size() <= 1) return;  // there is nothing to find or to forget
  // A peer that acknowledges frames but never names a newer arrival must not fill this side's memory.
  while (transmissions_.size() > kTransmissionsKept + 2 * in_flight_ && transmissions_.front().settled) {
    transmissions_.pop_front();
  }
  std::size_t older = any_acked_ ? position(largest_acked_) : 0;  // transmissions before largest_acked_
  for (; older > 0 && transmissions_.front().settled; --older) transmissions_.pop_front();
  for (std::size_t i = 0; i < older;) {
    Transmission& record = transmissions_[i];
    if (!record.settled && record.sequence.before(known_end_)) {
      const Time overdue = record.sent_at + loss_delay(older - i, reply_time);
      if (now < overdue) {
        deadline_ = overdue;
        break;
      }
      lost.push_back(record.sequence);
      settle(record);
    }
    if (record.settled && i == 0) {
      transmissions_.pop_front();
      --older;
    } else {
      ++i;
    }
  }
}

void LossDetector::mark_all_lost(std::vector<Sequence>& lost) {
  for (; !transmissions_.empty(); transmissions_.pop_front()) {
    if (!transmissions_.front().settled) lost.push_back(transmissions_.front().sequence);
  }
  in_flight_ = 0;
  deadline_ = kNever;
}

bool LossDetector::remembers(Sequence sequence, TransmissionNumber transmission) const {
  const std::optional<std::size_t> index = find(transmission);
  return index && transmissions_[*index].sequence == sequence;
}

}  // namespace cluster::multipath
