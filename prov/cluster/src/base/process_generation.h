// Which process this is: a child of fork() has a larger number than its parent. What a process has inherited is not
// its own: it must neither use nor release it (api/fid_object.h, os/fork_guard.h).
#pragma once

#include <atomic>

namespace cluster {

inline std::atomic<unsigned> process_generation{0};

}  // namespace cluster
