// process_generation is a number of this process: after fork(), the child's number is larger than its
// parent's. An object stores the number of the process that opened it. A process with another number has
// inherited the object. A process must neither use nor release inherited objects (api/fid_object.h,
// os/descriptor.h).
#pragma once

#include <atomic>

namespace cluster {

inline std::atomic<unsigned> process_generation{0};

}  // namespace cluster
