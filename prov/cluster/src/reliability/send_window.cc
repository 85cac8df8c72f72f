#include "reliability/send_window.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace cluster::reliability {

SendWindow::SendWindow(std::size_t capacity, Sequence first)
    : capacity_(std::bit_ceil(capacity)),
      frames_(std::min(capacity_, kInitialFrames)),
      mask_(static_cast<std::uint32_t>(frames_.size() - 1)),
      first_(first),
      end_(first),
      outstanding_(capacity),
      next_(first) {}

void SendWindow::push_run(const FrameRun& run) {
  const std::size_t count = run.frames();
  assert(has_space(count) && run.first == end_);
  while (static_cast<std::size_t>(end_ - first_) + count > frames_.size()) widen();
  const std::uint16_t number = free_run();
  runs_[number - 1u] = run;
  runs_[number - 1u].outstanding = count;
  for (std::size_t i = 0; i < count; ++i, ++end_) {
    SentFrame& frame = at(end_);
    frame.sendings = 0;
    frame.state = SentFrame::State::queued;
    frame.run = number;
  }
}

std::uint16_t SendWindow::free_run() {
  const auto free =
      std::find_if(runs_.begin(), runs_.end(), [](const FrameRun& run) { return run.outstanding == 0; });
  const auto number = static_cast<std::uint16_t>(free - runs_.begin() + 1);
  if (free == runs_.end()) runs_.emplace_back();
  return number;
}

void SendWindow::widen() {
  std::vector<SentFrame> wider(frames_.size() * 2);
  const auto mask = static_cast<std::uint32_t>(wider.size() - 1);
  for (Sequence s = first_; s != end_; ++s) wider[s.value & mask] = std::move(at(s));
  frames_ = std::move(wider);
  mask_ = mask;
}

void SendWindow::on_sent(Sequence s, TransmissionNumber transmission, Time now, std::uint8_t path) {
  if (s == next_) return on_new_sent(1, transmission, now, path);
  SentFrame& frame = at(s);
  const bool was_lost = frame.state == SentFrame::State::lost;
  frame.path = path;
  frame.state = SentFrame::State::in_flight;
  frame.transmission = transmission;
  frame.sent_at = now;
  ++frame.sendings;
  if (was_lost) drop_outdated_losses();
}

void SendWindow::on_new_sent(std::size_t count, TransmissionNumber transmission, Time now,
                             std::uint8_t path) {
  const Sequence end = next_ + static_cast<std::uint32_t>(count);
  if (count == 1) {
    outstanding_.insert(next_);
  } else {
    outstanding_.insert(next_, end);
  }
  outstanding_count_ += count;
  for (; next_ != end; ++next_, ++transmission) {
    SentFrame& frame = at(next_);
    if (has_token(frame)) ++with_tokens_;
    frame.path = path;
    frame.state = SentFrame::State::in_flight;
    frame.transmission = transmission;
    frame.sent_at = now;
    frame.sendings = 1;
  }
}

void SendWindow::mark_lost(Sequence s) {
  SentFrame& frame = at(s);
  assert(frame.state == SentFrame::State::in_flight);
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
  // An acknowledgement that the network has delayed may be old. But this side refuses an acknowledgement that
  // is older than kStaleAckMax frames.
  if (first() - ack > kStaleAckMax) return false;
  if (ranges == nullptr || ranges->count == 0) return true;
  // Compares each range with the window, not only the last range. Sequences wrap around, so the last range
  // could lie inside the window although an earlier range lies outside.
  for (std::size_t i = 0; i < ranges->count; ++i) {
    if (ranges->ranges[i].end.after(next_) || !ranges->ranges[i].first.after(ack)) return false;
  }
  return true;
}

/// Marks frame `s` as acknowledged, together with the next frames that form one stretch with it
/// (AckedStretch). All frames from `s` to `end` must be outstanding.
AckedStretch SendWindow::remove_stretch(Sequence s, Sequence end) {
  SentFrame& first = at(s);
  const bool once = first.state == SentFrame::State::in_flight && first.sendings == 1;
  AckedStretch stretch{{s, first.transmission, first.sent_at, once}, first.path};
  first.state = SentFrame::State::acknowledged;
  Sequence next = s + 1;
  for (TransmissionNumber wanted = first.transmission + 1; once && next != end; ++next, ++wanted) {
    SentFrame& frame = at(next);
    const bool alike = frame.run == first.run && frame.transmission == wanted && frame.path == first.path &&
                       frame.state == SentFrame::State::in_flight && frame.sendings == 1;
    if (!alike) break;
    frame.state = SentFrame::State::acknowledged;
    stretch.frames.last_sent_at = frame.sent_at;
  }
  const auto count = static_cast<std::size_t>(next - s);
  stretch.frames.count = count;
  outstanding_.erase(s, next);
  outstanding_count_ -= count;
  with_tokens_ -= count;
  FrameRun& run = run_at(first.run);
  run.outstanding -= count;
  stretch.ordered = run.ordered;
  stretch.part = run.part;
  stretch.run_end = run.end();
  if (run.outstanding == 0) stretch.token = run.token;
  return stretch;
}

void SendWindow::find_lost() {
  while (!lost_.empty()) {
    const Sequence s = lost_.front();
    if (is_outstanding(s) && at(s).state == SentFrame::State::lost) return;
    lost_.pop_front();
  }
}

std::size_t SendWindow::footprint() const {
  std::size_t bytes = frames_.capacity() * sizeof(SentFrame) + runs_.capacity() * sizeof(FrameRun);
  for (const SentFrame& frame : frames_) bytes += frame.body == nullptr ? 0 : frame.body->footprint();
  return bytes + outstanding_.footprint() + lost_.footprint();
}

}  // namespace cluster::reliability
