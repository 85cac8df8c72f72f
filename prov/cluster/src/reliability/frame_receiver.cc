#include "reliability/frame_receiver.h"

#include <algorithm>

namespace cluster::reliability {

bool PartAssembly::complete(wire::FrameView& view) {
  Frame& frame = frame_of(view);
  std::ranges::copy(view.segments, frame.segments.begin() + static_cast<std::ptrdiff_t>(view.part.begin()));
  frame.here |= std::uint64_t{1} << view.part.number;
  if (!frame.whole()) return false;
  complete_.swap(frame.segments);
  frames_.erase(frames_.begin() + (&frame - frames_.data()));
  view.segments = complete_;
  view.flags &= static_cast<std::uint8_t>(~wire::frame_flag::kPart);
  return true;
}

PartAssembly::Frame& PartAssembly::frame_of(const wire::FrameView& view) {
  const auto found = std::ranges::find(frames_, view.sequence, &Frame::sequence);
  if (found != frames_.end() && found->count == view.part.count &&
      found->segments.size() == view.part.total) {
    return *found;
  }
  if (found != frames_.end()) {
    frames_.erase(found);
  } else if (frames_.size() == kFramesMax) {
    frames_.erase(frames_.begin());
  }
  Frame& made = frames_.emplace_back();
  made.sequence = view.sequence;
  made.count = view.part.count;
  made.segments.resize(view.part.total);
  return made;
}

std::size_t PartAssembly::footprint() const {
  std::size_t bytes = frames_.capacity() * sizeof(Frame) + complete_.capacity();
  for (const Frame& frame : frames_) bytes += frame.segments.capacity();
  return bytes;
}

FrameReceiver::FrameReceiver(std::size_t window, Duration ack_delay, multipath::PathManager& paths,
                             Counters& counters, FlowStatus& status)
    : paths_(paths), counters_(counters), status_(status), window_(window), acks_(ack_delay) {}

ReceiveResult FrameReceiver::receive(Time now, const wire::FrameView& view, Time arrived, std::size_t count) {
  switch (window_.place_of(view.sequence)) {
    case ReceiveWindow::Place::outside: ++counters_.refused_window; return ReceiveResult::refused;
    // The transmission number of a late frame is ignored. If the number were forged and larger than all the
    // peer's numbers, this side would acknowledge it from then on. The peer would refuse all these
    // acknowledgements.
    case ReceiveWindow::Place::late: ++counters_.frames_duplicate; return ReceiveResult::late;
    case ReceiveWindow::Place::within: break;
  }
  if (!view.in_part()) [[likely]]
    return take(now, view, arrived, count);
  wire::FrameView whole = view;
  return parts_.complete(whole) ? take(now, whole, arrived, 1) : ReceiveResult::incomplete;
}

ReceiveResult FrameReceiver::take(Time now, const wire::FrameView& view, Time arrived, std::size_t count) {
  using Urgency = AckScheduler::Urgency;
  const bool gap_before = window_.has_gap();
  switch (count == 1 ? window_.arrive(view.sequence, view.transmission, view.in_order(), view.segments)
                     : window_.arrive_run(view.sequence, view.transmission, count)) {
    case ReceiveWindow::Arrival::held:
    case ReceiveWindow::Arrival::duplicate:
      ++counters_.frames_duplicate;
      if (ack_was_lost(arrived)) paths_.suspect_ethertype_paths(now);
      acks_.on_frame(now, arrived, view.transmission, Urgency::now);
      return ReceiveResult::nothing_new;
    case ReceiveWindow::Arrival::fresh: break;
  }
  const bool gap_changed = (gap_before || window_.has_gap()) && !paths_.reordering_expected();
  acks_.on_frame(now, arrived, view.transmission + static_cast<std::uint32_t>(count - 1),
                 gap_changed      ? Urgency::now
                 : view.ack_now() ? Urgency::soon
                                  : Urgency::none,
                 count);
  return ReceiveResult::accepted;
}

/// Called for a duplicate. Returns true if the peer has probably retransmitted the frame because an
/// acknowledgement was lost. If the last acknowledgement left less than min_reply_delay() ago, this is not
/// certain, because the duplicate may have left before that acknowledgement arrived. It is not certain either
/// while an acknowledgement is owed.
bool FrameReceiver::ack_was_lost(Time arrived) const {
  return !acks_.owed() && arrived - acks_.last_sent_at() >= paths_.min_reply_delay();
}

bool FrameReceiver::may_end_at(Sequence end) const {
  if (fin_) return *fin_ == end;
  const std::int32_t ahead = end - window_.expected();
  return ahead >= 0 && ahead <= static_cast<std::int32_t>(window_.size());
}

void FrameReceiver::on_fin(Time now, Sequence end) {
  if (fin_) return;
  fin_ = end;
  fin_timeout_at_ = now + kFinTimeout;
  end_if_complete();
}

void FrameReceiver::end_if_complete() {
  if (fin_ && window_.expected() == *fin_ && window_.all_handed_on()) status_.end(Status::reset);
}

bool FrameReceiver::next(ConstBytes& segments) {
  if (window_.next(segments)) return true;
  end_if_complete();
  return false;
}

/// Counts the held frame as arrived, so that next() continues with it. The acknowledgement is due at once:
/// after many retransmissions the peer may be in a long backoff, and its next retransmission may come late.
void FrameReceiver::resume(Time now) {
  const TransmissionNumber brought_by = window_.resume();
  acks_.on_frame(now, now, brought_by, AckScheduler::Urgency::now);
}

void FrameReceiver::on_ack_sent(Time now, const OutgoingAck& ack, AckIncluded included, bool bare) {
  if (included == AckIncluded::none) return;
  acks_.on_ack_sent(now, bare);
  if (included == AckIncluded::block) acks_.set_spurious_reported(ack.spurious());
}

}  // namespace cluster::reliability
