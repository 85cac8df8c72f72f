// Copies between this process and another one of the same user in one step (process_vm_readv and
// process_vm_writev: "cross memory attach"). The kernel may refuse it: Yama, seccomp, user namespaces.
//
// The kernel finds the process by its number, and numbers are reused. A guarded copy cannot reach the wrong
// process: its first piece lies in a page that only the right process has (GuardPage). The kernel looks up
// the number once per call, and copies the pieces in order until one fails. So in another address space the
// copy ends before it touches anything. That may be the address space of a later process with the same
// number, or of the same process after exec().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/environment.h"

namespace cluster::os {

/// What another process must know of the guard page.
struct GuardMark {
  std::uint64_t address = 0;  ///< of the secret; 0: none
  std::uint64_t value = 0;

  /// Where the first piece of a guarded write goes; nothing reads it.
  std::uint64_t write_address() const { return address + 64; }
};

/// A page that tells an address space from every other. It holds a secret, and lies at a random place in a
/// range of 2^33 pages that Linux by itself gives to no process. No later process has it by accident,
/// whatever its process number and whatever it maps. Neither has a child of fork(), nor the same process
/// after exec().
class GuardPage {
 public:
  /// Maps a guard page. Returns an empty one if the address space has no free place for it.
  static GuardPage open(Random& random);
  GuardPage() = default;
  GuardPage(GuardPage&& other) noexcept : mark_(std::exchange(other.mark_, {})) {}
  GuardPage& operator=(GuardPage&& other) noexcept {
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~GuardPage();

  explicit operator bool() const { return mark_.address != 0; }
  const GuardMark& mark() const { return mark_; }

 private:
  explicit GuardPage(const GuardMark& mark) : mark_(mark) {}

  GuardMark mark_;
};

/// Copies `length` bytes from `address` in process `process` to position `offset` of the concatenation of
/// `slices` (as many as a request may have). Returns false unless it has copied all of them.
bool read_process(int process, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                  std::size_t length);
/// Copies in the other direction, to the other process.
bool write_process(int process, std::uint64_t address, const Gather& source);

/// Returns, in words for the log, why the memory of that process was not reached. `error` is the errno of the
/// call; 0 means that the call read the memory of another process.
std::string why_unreached(int process, int error);

enum class GuardedCopy : std::uint8_t {
  whole,
  cut_short,  ///< some of the memory, here or there, cannot be copied
  no_process  ///< the process has gone, or the kernel forbids it: nothing was copied
};
GuardedCopy read_guarded(int process, const GuardMark& guard, std::uint64_t address,
                         std::span<const Bytes> slices, std::size_t offset, std::size_t length);
GuardedCopy write_guarded(int process, const GuardMark& guard, std::uint64_t address, const Gather& source);

}  // namespace cluster::os
