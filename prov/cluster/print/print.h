// Frames and segments as text, for logs, traces and the dissector. They have been admitted, so this checks nothing.
#pragma once

#include <string>

#include "wire/admit.h"
#include "wire/segment.h"

namespace cluster::wire {

/// One line, no newline: "flow seq 17 tx 19 ack 4 [opening 10.0.0.1:5000 epoch ...] 2 segments".
std::string print(const FrameView& frame);
std::string print(const Segment& segment);

}  // namespace cluster::wire
