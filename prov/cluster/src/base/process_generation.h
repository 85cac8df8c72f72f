// The generation of this process: a child of fork() has a larger number than its parent. A process must
// neither use nor release objects that it has inherited (api/fid_object.h, os/descriptor.h).
#pragma once

#include <atomic>

namespace cluster {

inline std::atomic<unsigned> process_generation{0};

}  // namespace cluster
