// Copies between this process and another one of the same user in one step (process_vm_readv and process_vm_writev: "cross memory
// attach"). The kernel may refuse it: Yama, seccomp, user namespaces.
//
// The kernel finds the process by its number, and numbers are used again. A guarded copy cannot reach the wrong process: its first
// piece is a page that only the right one has (GuardPage). The kernel looks up the number once a call and copies the pieces in order
// until one fails. So in another address space, that of a later process of the same number or of the same process after exec(), the
// copy ends before it touches anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/environment.h"

namespace cluster::os {

/// What another process must know of the page.
struct GuardMark {
  std::uint64_t address = 0;  ///< of the secret; 0: none
  std::uint64_t value = 0;

  /// What writes copy to: nothing reads it.
  std::uint64_t write_address() const { return address + 64; }
};

/// A page that tells an address space from every other. It lies at a random place of a range that Linux by itself gives to no
/// process, 2^33 pages wide, and holds a secret. No later process has it by accident, whatever its process number and whatever it maps.
/// Neither has a child of fork(), nor the same process after exec().
class GuardPage {
 public:
  /// Empty if the address space has no free place for it.
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
