// Copies between the memory of this process and that of another process of the same user in one step
// (process_vm_readv and process_vm_writev, "cross memory attach"). Yama, a seccomp filter or a user namespace
// may forbid such copies.
//
// The kernel finds the process by its PID, and reuses PIDs. A guarded copy cannot touch the memory of a wrong
// process: its first piece is in a page that only the right process has (GuardPage). The kernel looks up the
// PID once per call, and copies the pieces in order until one fails. In another address space the first piece
// fails, so nothing is copied. Another address space belongs to a later process with the same PID, or to the
// same process after exec().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/environment.h"

namespace cluster::os {

/// What another process must know about the guard page.
struct GuardMark {
  std::uint64_t address = 0;  ///< address of the secret, or 0 if there is no guard page
  std::uint64_t value = 0;

  /// Returns the address to which a guarded write copies its first piece. Nothing reads the word at this
  /// address.
  std::uint64_t write_address() const { return address + 64; }
};

/// A page that distinguishes this address space from all others. It contains a secret, and its address is
/// random in a range of 2^33 pages that Linux does not use by default. Therefore no later process has this
/// page by chance. A child of fork() does not have the page, and the same process does not have it after
/// exec().
class GuardPage {
 public:
  /// Maps a guard page. Returns an empty object if that fails.
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

/// Copies `length` bytes from `address` in the process `process` to this process. The first byte goes to the
/// position `offset` of the concatenated `slices`. `slices` has at most as many elements as one libfabric
/// operation may have. Returns false unless all bytes have been copied.
bool read_process(int process, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                  std::size_t length);
/// Copies the bytes of `source` to `address` in the process `process`. Returns false unless all bytes have
/// been copied.
bool write_process(int process, std::uint64_t address, const Gather& source);

/// Returns, for the log, the reason why the memory of the process was not accessible. `error`: the errno of
/// the call, or 0 if the call read the memory of a wrong process.
std::string why_unreached(int process, int error);

enum class GuardedCopy : std::uint8_t {
  whole,
  cut_short,  ///< part of the memory, in this process or in the other process, cannot be accessed
  no_process  ///< the process has ended or is another one, or the kernel forbids the copy; nothing was copied
};
GuardedCopy read_guarded(int process, const GuardMark& guard, std::uint64_t address,
                         std::span<const Bytes> slices, std::size_t offset, std::size_t length);
GuardedCopy write_guarded(int process, const GuardMark& guard, std::uint64_t address, const Gather& source);

}  // namespace cluster::os
