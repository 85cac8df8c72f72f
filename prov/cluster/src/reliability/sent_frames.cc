#include "reliability/sent_frames.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace cluster::reliability {

SentFrames::SentFrames(std::size_t capacity, Sequence first)
    : capacity_(std::bit_ceil(capacity)),
      frames_(std::min(capacity_, kInitialFrames)),
      mask_(static_cast<std::uint32_t>(frames_.size() - 1)),
      first_(first),
      end_(first) {}

void SentFrames::push(std::unique_ptr<FrameBody> body) {
  assert(has_space(1));
  if (static_cast<std::size_t>(end_ - first_) == frames_.size()) widen();
  SentFrame& frame = at(end_);
  frame.body = std::move(body);
  frame.sendings = 0;
  frame.state = SentFrame::State::queued;
  frame.run = 0;
  ++end_;
}

void SentFrames::push_run(const FrameRun& run) {
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

std::uint16_t SentFrames::free_run() {
  const auto free =
      std::find_if(runs_.begin(), runs_.end(), [](const FrameRun& run) { return run.outstanding == 0; });
  const auto number = static_cast<std::uint16_t>(free - runs_.begin() + 1);
  if (free == runs_.end()) runs_.emplace_back();
  return number;
}

void SentFrames::widen() {
  std::vector<SentFrame> wider(frames_.size() * 2);
  const auto mask = static_cast<std::uint32_t>(wider.size() - 1);
  for (Sequence s = first_; s != end_; ++s) wider[s.value & mask] = std::move(at(s));
  frames_ = std::move(wider);
  mask_ = mask;
}

std::size_t SentFrames::frames_footprint() const {
  std::size_t bytes = frames_.capacity() * sizeof(SentFrame) + runs_.capacity() * sizeof(FrameRun);
  for (const SentFrame& frame : frames_) bytes += frame.body == nullptr ? 0 : frame.body->footprint();
  return bytes;
}

}  // namespace cluster::reliability
