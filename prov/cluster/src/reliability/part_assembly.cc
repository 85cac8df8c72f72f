#include "reliability/part_assembly.h"

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

}  // namespace cluster::reliability
