#include "reliability/send_window.h"

#include <algorithm>
#include <bit>

namespace cluster::reliability {

SendWindow::SendWindow(std::size_t capacity)
    : capacity_(std::bit_ceil(capacity)),
      frames_(std::min(capacity_, kInitialFrames)),
      mask_(static_cast<std::uint32_t>(frames_.size() - 1)),
      outstanding_(capacity_) {}

void SendWindow::push(std::unique_ptr<FrameBody> body) {
  assert(has_space(1));
  if (static_cast<std::size_t>(end_ - first_) == frames_.size()) {
    std::vector<SentFrame> wider(frames_.size() * 2);
    const auto mask = static_cast<std::uint32_t>(wider.size() - 1);
    for (Sequence s = first_; s != end_; ++s) wider[s.value & mask] = std::move(at(s));
    frames_ = std::move(wider);
    mask_ = mask;
  }
  SentFrame& frame = at(end_);
  frame.body = std::move(body);
  frame.sendings = 0;
  frame.state = SentFrame::State::queued;
  ++end_;
}

void SendWindow::on_sent(Sequence s, TransmissionNumber transmission, Time now, std::uint8_t path) {
  SentFrame& frame = at(s);
  if (s == next_) {
    ++next_;
    outstanding_.insert(s);
    ++outstanding_count_;
    if (!frame.body->tokens.empty()) ++with_tokens_;
  }
  const bool was_lost = frame.state == SentFrame::State::lost;
  if (frame.state != SentFrame::State::in_flight) ++in_flight_;
  frame.path = path;
  frame.state = SentFrame::State::in_flight;
  frame.transmission = transmission;
  frame.sent_at = now;
  ++frame.sendings;
  if (was_lost) drop_outdated_losses();
}

void SendWindow::mark_lost(Sequence s) {
  SentFrame& frame = at(s);
  assert(frame.state == SentFrame::State::in_flight);
  --in_flight_;
  frame.state = SentFrame::State::lost;
  lost_.push_back(s);
}

Sequence SendWindow::pop_lost() {
  assert(has_lost());
  const Sequence s = lost_.front();
  lost_.pop_front();
  drop_outdated_losses();
  return s;
}

bool SendWindow::valid_ack(Sequence ack, const wire::Ack* ranges) const {
  if (ack.after(next_)) return false;
  // An old acknowledgement may have been delayed for long.
  if (first_ - ack > kStaleAckMax) return false;
  if (ranges == nullptr || ranges->count == 0) return true;
  // The ranges ascend from `ack`, each step less than 2^31: none may leave the window on the way.
  for (std::size_t i = 0; i < ranges->count; ++i) {
    if (ranges->ranges[i].end.after(next_) || !ranges->ranges[i].first.after(ack)) return false;
  }
  return true;
}

void SendWindow::remove(Sequence s, SentFrame& frame) {
  outstanding_.erase(s);
  --outstanding_count_;
  if (frame.state == SentFrame::State::in_flight) --in_flight_;
  if (!frame.body->tokens.empty()) --with_tokens_;
  frame.state = SentFrame::State::acknowledged;
}

void SendWindow::drop_outdated_losses() {
  while (!lost_.empty()) {
    const Sequence s = lost_.front();
    if (is_outstanding(s) && at(s).state == SentFrame::State::lost) return;
    lost_.pop_front();
  }
}

std::size_t SendWindow::footprint() const {
  std::size_t bytes = frames_.capacity() * sizeof(SentFrame) + outstanding_.footprint() + lost_.footprint();
  for (const SentFrame& frame : frames_) bytes += frame.body == nullptr ? 0 : frame.body->footprint();
  return bytes;
}

}  // namespace cluster::reliability
