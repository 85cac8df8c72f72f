// Looks into frames as a capture on the wire would: admitted frames, segment by segment.
// For traces only: no decision depends on it.
#pragma once

#include <string>

#include "wire/admit.h"
#include "wire/segment.h"

namespace cluster::sim {

/// visit(segment, payload) for each segment of a frame that came through the gate.
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

/// One line for frame and segments; "no frame of ours" if it does not pass the gate.
std::string text_of_frame(ConstBytes bytes);

}  // namespace cluster::sim
