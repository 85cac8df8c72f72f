// Takes admitted frames apart, segment by segment: for the oracle, and as text for traces.
#pragma once

#include <string>

#include "wire/admit.h"
#include "wire/segment.h"

namespace cluster::sim {

/// Calls visit(segment, payload) for each segment of a frame that has passed the gate.
template <typename Visit>
void each_segment(ConstBytes segments, Visit&& visit) {
  while (!segments.empty()) {
    wire::Segment segment;
    const std::size_t header = wire::decode(segments, segment);
    if (header == 0 || segment.length > segments.size() - header) return;
    visit(segment, segments.subspan(header, segment.length));
    segments = segments.subspan(header + segment.length);
  }
}

/// Returns one line about the frame and its segments, or "no frame of ours" if the frame does not pass the
/// gate.
std::string text_of_frame(ConstBytes bytes);

}  // namespace cluster::sim
