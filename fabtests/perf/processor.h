// The processors underneath: where a side runs, what it has used, and how far apart two of them are.
//
// Virtual processors move: two of them may share a cache now and not a second later, and everything
// that passes through memory then changes by a factor. Every sample carries the distance before and
// after it; only samples of like distance may be compared.
#pragma once

namespace perf {

/// Binds the calling process to one processor; false if it may not run there.
bool pin(int cpu);
/// Nanoseconds a cache line takes from this processor to `other`; 0 if that cannot be found out.
double cache_line_ns(int other);
/// Processor time this process has used, its helper threads and the kernel's work for it included.
double cpu_seconds();

}  // namespace perf
