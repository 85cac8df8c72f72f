// Copies between this process and another one of the same user in one step (process_vm_readv and
// process_vm_writev: "cross memory attach"). The kernel may refuse it: Yama, seccomp, user namespaces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace cluster::os {

/// Copies `length` bytes from `address` in process `process` to position `offset` of the
/// concatenation of `slices` (as many as a request may have). False unless all of it was copied.
bool read_process(int process, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                  std::size_t length);
/// The same towards the other process.
bool write_process(int process, std::uint64_t address, const Gather& source);

}  // namespace cluster::os
