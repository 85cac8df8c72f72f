// How crowded the processors of this node are.
#pragma once

namespace cluster::os {

/// Returns how many threads of this node run or are ready to run, for each processor, rounded up. Returns 1
/// if the kernel does not report the number. The call takes some microseconds. `path`: tests pass another
/// file.
unsigned threads_per_processor(const char* path = "/proc/loadavg");

}  // namespace cluster::os
