#include "reliability/frame_selector.h"

#include <algorithm>

namespace cluster::reliability {

/// Bursts are as long as the link takes: each costs a way through the kernel, and a peer that could begin with a shorter
/// first one saves less than that.
FrameSelector::Selection FrameSelector::select(Time now) {
  Selection selection;
  SendWindow& window = queue_.window();
  const bool repeat = repeat_ && window.is_outstanding(*repeat_);
  const multipath::PathScheduler& scheduler = paths_.scheduler();
  const multipath::PathScheduler::Grant grant =
      repeat ? scheduler.select_other(now, window.at(*repeat_).path) : scheduler.select(now);
  selection.path = grant.path;
  const std::size_t limit = std::min(grant.frames, link::kBurstMax);
  if (repeat) selection.picks[selection.count++] = {*repeat_, true, false};
  while (window.has_lost() && selection.count < limit) {
    const Sequence s = window.pop_lost();
    if (repeat && *repeat_ == s) {
      selection.picks[0].from_lost = true;
    } else {
      selection.picks[selection.count++] = {s, false, true};
    }
  }
  selection.retransmissions = selection.count != 0;
  repeat_.reset();
  select_new(selection, limit);
  return selection;
}

void FrameSelector::select_new(Selection& selection, std::size_t limit) {
  SendWindow& window = queue_.window();
  const Sequence window_end = window.first() + static_cast<std::uint32_t>(handshake_.window());
  Sequence s = window.next();
  while (s.before(window_end) && selection.count < limit) {
    if (s == window.end()) queue_.close_open_frame();
    if (s == window.end()) break;
    if (window.awaited(window.at(s))) selection.completion_awaited = true;
    selection.picks[selection.count++] = {s, false, false};
    ++s;
  }
  selection.frames_left = s != window.end() || queue_.has_open_frame() || window.has_lost();
  selection.completion_awaited = selection.completion_awaited || window.tokens_outstanding();
}

/// With more to send, the peer acknowledges by number of frames, which is too late only if the window is
/// small.
bool FrameSelector::wants_ack(const Selection& selection) const {
  if (!handshake_.peer_has_opening() || selection.retransmissions) return true;
  if (!selection.frames_left) return selection.completion_awaited;
  return std::min(paths_[selection.path].recovery.congestion().window(), handshake_.window()) < kSmallWindow;
}

void FrameSelector::put_back(const Pick& pick) {
  if (pick.from_lost) queue_.window().requeue_lost(pick.sequence);
  if (pick.repeat) repeat_ = pick.sequence;
}

}  // namespace cluster::reliability
