#include "reliability/ack_processor.h"

#include <algorithm>
#include <utility>

namespace cluster::reliability {

AckProcessor::AckProcessor(SendQueue& queue, const FrameSender& sender, FrameSize& frame_size,
                           multipath::PathManager& paths, RetransmissionTimer& timer)
    : queue_(queue), sender_(sender), frame_size_(frame_size), paths_(paths), timer_(timer) {}

bool AckProcessor::valid(const wire::FrameView& view) const {
  return queue_.window().valid_ack(view.ack, view.has_ranges ? &view.ranges : nullptr) &&
         !view.largest_acked.after(sender_.last_transmission());
}

void AckProcessor::process(Time now, const wire::FrameView& view, Time arrived) {
  settle();
  // A peer that sends data and receives none repeats the same acknowledgement in each frame. Such a
  // repetition is no news, even if it has an ack block without ranges and without a new number of spurious
  // retransmissions.
  const bool no_news = !view.has_ranges || (view.ranges.count == 0 && view.ranges.spurious == spurious_);
  const Contents contents{view.ack, view.largest_acked, no_news};
  if (contents.without_ranges && last_ == contents) return;
  if (last_ && view.largest_acked.after(last_->largest_acked)) timer_.on_answer();
  last_ = contents;
  const SendWindow& window = queue_.window();
  const Sequence complete_before = window.first();
  const std::size_t acked = acknowledge_frames(view.ack, view.has_ranges ? &view.ranges : nullptr);
  if (!withheld_.empty()) release_withheld();
  // If the ack block is full, the peer may have received frames after its last range.
  const bool partial = view.has_ranges && view.ranges.count == wire::kAckRangesMax;
  multipath::AckInfo ack{};
  ack.largest_acked = view.largest_acked;
  ack.known_end = partial ? view.ranges.ranges[view.ranges.count - 1].end : window.next();
  ack.next = sender_.last_transmission() + 1;
  ack.arrived = arrived;
  if (view.knows_ack_delay()) ack.delay = Duration(view.ack_delay_ns);
  ack.spurious = new_spurious(view);
  paths_.on_ack(now, ack);
  const bool progress = acked != 0 || window.first() != complete_before;
  if (progress) timer_.on_progress(now, window.first() != window.next());
  if (!progress) frame_size_.on_answer(view.largest_acked);
}

void AckProcessor::settle() {
  if (!unsettled_) return;
  paths_.on_ack(unsettled_->now, unsettled_->ack);
  unsettled_.reset();
}

void AckProcessor::take(Time now, const wire::LoneFrame& lone, Time arrived) {
  if (last_->ack == lone.ack && last_->largest_acked == lone.largest_acked) return;
  if (lone.largest_acked.after(last_->largest_acked)) timer_.on_answer();
  last_ = {lone.ack, lone.largest_acked, true};
  SendWindow& window = queue_.window();
  SentFrame* const oldest = window.acknowledge_oldest(lone.ack);
  if (oldest != nullptr) on_frame_acked(lone.ack.previous(), *oldest, lone.ack);
  if (oldest != nullptr || acknowledge_frames(lone.ack, nullptr) != 0) {
    timer_.on_progress(now, window.first() != window.next());
  } else {
    frame_size_.on_answer(lone.largest_acked);
  }
  News& news = unsettled_.emplace();
  news.now = now;
  news.ack.largest_acked = lone.largest_acked;
  news.ack.known_end = window.next();
  news.ack.next = sender_.last_transmission() + 1;
  news.ack.arrived = arrived;
  if (lone.knows_ack_delay()) news.ack.delay = Duration(lone.ack_delay_ns());
}

/// Called when a frame with a body is newly acknowledged. `complete_before`: the sequence before which the
/// peer has every frame.
inline void AckProcessor::on_frame_acked(Sequence s, SentFrame& frame, Sequence complete_before) {
  paths_.on_frames_acked(frame.path, {s, frame.transmission, frame.sent_at, frame.sendings == 1});
  for (const carrier::Token token : frame.body->tokens)
    report(token, s, frame.body->ordered, complete_before);
  frame_size_.on_acked(s, frame.sendings);
  if (frame_size_.in_doubt()) [[unlikely]]
    frame_size_.on_arrived(sizeof(wire::FrameHeader) + frame.body->size());
  queue_.recycle(std::move(frame.body));
}

std::size_t AckProcessor::acknowledge_frames(Sequence ack, const wire::Ack* ranges) {
  std::size_t acked = 0;
  const auto on_acked = [&](Sequence s, SentFrame& frame) {
    ++acked;
    on_frame_acked(s, frame, ack);
  };
  const auto on_run_acked = [&](const AckedStretch& stretch) {
    acked += stretch.frames.count;
    paths_.on_frames_acked(stretch.path, stretch.frames);
    if (frame_size_.in_doubt()) frame_size_.on_run_arrived(stretch.part);
    if (stretch.token != 0) report(stretch.token, stretch.run_end.previous(), stretch.ordered, ack);
  };
  queue_.window().acknowledge(ack, ranges, on_acked, on_run_acked);
  return acked;
}

void AckProcessor::withhold(carrier::Token token, Sequence s) { withheld_.push_back({s, token}); }

void AckProcessor::release_withheld() {
  std::erase_if(withheld_, [this](const Withheld& withheld) {
    const bool complete = withheld.sequence.before(queue_.window().first());
    if (complete) acked_tokens_.push_back(withheld.token);
    return complete;
  });
}

/// Returns by how much the peer's count of spurious retransmissions has grown since an ack block last
/// reported it.
std::uint32_t AckProcessor::new_spurious(const wire::FrameView& view) {
  if (!view.has_ranges || static_cast<std::int32_t>(view.ranges.spurious - spurious_) <= 0) return 0;
  return view.ranges.spurious - std::exchange(spurious_, view.ranges.spurious);
}

}  // namespace cluster::reliability
