#include "os/process_memory.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

constexpr std::size_t kPartsMax = 16;

using Copy = decltype(&::process_vm_readv);

/// The bytes [offset, offset + length) of the concatenated slices, as an array of iovec.
struct Window {
  std::array<iovec, 1 + kPartsMax> parts;
  std::size_t count;
  std::size_t left;  ///< number of bytes for which no part is left

  template <typename Slice>
  Window(std::span<const Slice> slices, std::size_t offset, std::size_t length, std::size_t first)
      : count(first), left(each_piece(slices, offset, length, [this](const Slice& piece) {
          if (count == parts.size()) return false;
          parts[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
          return true;
        })) {}
};

iovec there(std::uint64_t address, std::size_t length) { return {reinterpret_cast<void*>(address), length}; }

template <typename Slice>
bool copy(Copy call, int process, std::uint64_t address, std::span<const Slice> slices, std::size_t offset,
          std::size_t length) {
  const Window here(slices, offset, length, 0);
  const iovec remote = there(address, length);
  return here.left == 0 &&
         call(process, here.parts.data(), here.count, &remote, 1, 0) == static_cast<ssize_t>(length);
}

/// Copies the word at guard.address first, and then the `length` bytes. If `call` reads from the right
/// process, the word is then guard.value. If `call` writes, the word stays 0, so write_guarded() passes 0 as
/// guard.value.
template <typename Slice>
GuardedCopy copy_guarded(Copy call, int process, const GuardMark& guard, std::uint64_t address,
                         std::span<const Slice> slices, std::size_t offset, std::size_t length) {
  Window here(slices, offset, length, 1);
  if (here.left > 0) return GuardedCopy::cut_short;
  std::uint64_t word = 0;
  here.parts[0] = {&word, sizeof word};
  const iovec remote[] = {there(guard.address, sizeof word), there(address, length)};
  const ssize_t copied = call(process, here.parts.data(), here.count, remote, 2, 0);
  if (word != guard.value || copied < static_cast<ssize_t>(sizeof word)) return GuardedCopy::no_process;
  return copied == static_cast<ssize_t>(sizeof word + length) ? GuardedCopy::whole : GuardedCopy::cut_short;
}

}  // namespace

bool read_process(int process, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                  std::size_t length) {
  return copy(::process_vm_readv, process, address, slices, offset, length);
}

bool write_process(int process, std::uint64_t address, const Gather& source) {
  return copy(::process_vm_writev, process, address, source.slices, source.offset, source.length);
}

std::string why_unreached(int process, int error) {
  if (process == 0)
    return "the peer's process has no PID in this PID namespace (let the containers share a PID namespace)";
  if (error == 0) return "in this PID namespace, another process has the peer's PID";
  const std::string text = "process_vm_readv: " + error_text(error);
  if (error != EPERM && error != ENOSYS) return text;
  return text + " (forbidden by a seccomp filter, kernel.yama.ptrace_scope, or another user namespace)";
}

GuardedCopy read_guarded(int process, const GuardMark& guard, std::uint64_t address,
                         std::span<const Bytes> slices, std::size_t offset, std::size_t length) {
  return copy_guarded(::process_vm_readv, process, guard, address, slices, offset, length);
}

GuardedCopy write_guarded(int process, const GuardMark& guard, std::uint64_t address, const Gather& source) {
  return copy_guarded(::process_vm_writev, process, {guard.write_address(), 0}, address, source.slices,
                      source.offset, source.length);
}

namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr int kGuardAttempts = 16;
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kRangeBegin = 0x7f0000000000;  // ThreadSanitizer itself uses the other range
constexpr std::uint64_t kRangePages = std::uint64_t{1} << 27;
#else
/// By default, Linux places programs with fixed addresses and their heaps below this range. It places
/// position-independent programs, libraries and stacks above this range.
constexpr std::uint64_t kRangeBegin = std::uint64_t{1} << 45;
constexpr std::uint64_t kRangePages = std::uint64_t{1} << 33;
#endif

}  // namespace

GuardPage GuardPage::open(Random& random) {
  for (int i = 0; i < kGuardAttempts; ++i) {
    const std::uint64_t address = kRangeBegin + random.next() % kRangePages * kGuardBytes;
    void* const wanted = reinterpret_cast<void*>(address);
    void* const page = ::mmap(wanted, kGuardBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) continue;
    // A kernel that does not know MAP_FIXED_NOREPLACE may map the page elsewhere.
    if (page != wanted || ::madvise(page, kGuardBytes, MADV_DONTFORK) != 0) {
      ::munmap(page, kGuardBytes);
      continue;
    }
    const GuardMark mark{address, random.next() | 1};
    *static_cast<std::uint64_t*>(page) = mark.value;
    return GuardPage(mark);
  }
  return {};
}

GuardPage::~GuardPage() {
  if (mark_.address != 0) ::munmap(reinterpret_cast<void*>(mark_.address), kGuardBytes);
}

}  // namespace cluster::os
