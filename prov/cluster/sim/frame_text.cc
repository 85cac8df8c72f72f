#include "sim/frame_text.h"

#include <cstddef>

#include "print/print.h"

namespace cluster::sim {

std::string text_of_frame(ConstBytes bytes) {
  wire::FrameView view;
  switch (wire::admit(bytes, view)) {
    case wire::Refusal::malformed: return "no frame of ours, " + std::to_string(bytes.size()) + " bytes";
    case wire::Refusal::checksum: return "damaged, " + std::to_string(bytes.size()) + " bytes";
    case wire::Refusal::sealed:
      return "sealed, kind " +
             std::to_string(static_cast<unsigned>(bytes[offsetof(wire::FrameHeader, kind)])) + ", " +
             std::to_string(bytes.size()) + " bytes";
    case wire::Refusal::none: break;
  }
  std::string text = wire::print(view);
  each_segment(view.segments,
               [&text](const wire::Segment& segment, ConstBytes) { text += " | " + wire::print(segment); });
  return text;
}

}  // namespace cluster::sim
