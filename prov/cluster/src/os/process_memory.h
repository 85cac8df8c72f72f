// Copies between this process and another one of the same user in one step (process_vm_readv and
// process_vm_writev: "cross memory attach"). The kernel may refuse it: Yama, seccomp, user namespaces.
//
// The kernel finds the process by its number, and numbers are used again. A guarded copy cannot meet the wrong
// process: its first piece is a page that only the right one has (os/guard_page.h). The kernel looks the
// number up once a call and copies the pieces in order until one fails, so in another address space, that of
// a later process of the same number or of the same process after exec(), it ends before anything is touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "os/guard_page.h"

namespace cluster::os {

/// Copies `length` bytes from `address` in process `process` to position `offset` of the
/// concatenation of `slices` (as many as a request may have). False unless all of it was copied.
bool read_process(int process, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                  std::size_t length);
/// The same towards the other process.
bool write_process(int process, std::uint64_t address, const Gather& source);

/// Why the memory of that process was not reached, in words for the log. `error`: errno behind the call; 0: what was read was not
/// its memory.
std::string why_unreached(int process, int error);

enum class GuardedCopy : std::uint8_t {
  whole,
  cut_short,  ///< some of this memory, here or there, cannot be copied
  no_process  ///< the process has gone, or the kernel forbids it: nothing was copied
};
GuardedCopy read_guarded(int process, const GuardMark& guard, std::uint64_t address,
                         std::span<const Bytes> slices, std::size_t offset, std::size_t length);
GuardedCopy write_guarded(int process, const GuardMark& guard, std::uint64_t address, const Gather& source);

}  // namespace cluster::os
