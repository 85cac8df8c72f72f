#include "os/process_memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace cluster::os {
namespace {

constexpr std::size_t kPartsMax = 16;

/// The window [offset, offset + length) of scattered memory in the kernel's form.
struct Window {
  std::array<iovec, 1 + kPartsMax> parts;
  std::size_t count = 0;
  std::size_t left;  ///< bytes that found no part

  template <typename Slice>
  Window(std::span<const Slice> slices, std::size_t offset, std::size_t length, std::size_t first = 0)
      : count(first), left(length) {
    for (const Slice& slice : slices) {
      if (left == 0 || count == parts.size()) return;
      if (offset >= slice.size()) {
        offset -= slice.size();
        continue;
      }
      const std::size_t size = std::min(left, slice.size() - offset);
      parts[count++] = {const_cast<std::byte*>(slice.data()) + offset, size};
      left -= size;
      offset = 0;
    }
  }
};

iovec there(std::uint64_t address, std::size_t length) { return {reinterpret_cast<void*>(address), length}; }

bool whole(ssize_t copied, std::size_t length) {
  return copied >= 0 && static_cast<std::size_t>(copied) == length;
}

/// Of a copy whose first piece was `word`, of the guard.
GuardedCopy outcome(ssize_t copied, std::size_t word, std::size_t length) {
  if (copied < static_cast<ssize_t>(word)) return GuardedCopy::no_process;
  return whole(copied, word + length) ? GuardedCopy::whole : GuardedCopy::cut_short;
}

}  // namespace

bool read_process(int process, std::uint64_t address, std::span<const Bytes> slices, std::size_t offset,
                  std::size_t length) {
  const Window here(slices, offset, length);
  const iovec remote = there(address, length);
  return here.left == 0 &&
         whole(::process_vm_readv(process, here.parts.data(), here.count, &remote, 1, 0), length);
}

bool write_process(int process, std::uint64_t address, const Gather& source) {
  const Window here(source.slices, source.offset, source.length);
  const iovec remote = there(address, source.length);
  return here.left == 0 &&
         whole(::process_vm_writev(process, here.parts.data(), here.count, &remote, 1, 0), source.length);
}

GuardedCopy read_guarded(int process, const GuardMark& guard, std::uint64_t address,
                         std::span<const Bytes> slices, std::size_t offset, std::size_t length) {
  Window here(slices, offset, length, 1);
  if (here.left > 0) return GuardedCopy::cut_short;
  std::uint64_t seen = 0;
  here.parts[0] = {&seen, sizeof seen};
  const iovec remote[] = {there(guard.address, sizeof seen), there(address, length)};
  const ssize_t copied = ::process_vm_readv(process, here.parts.data(), here.count, remote, 2, 0);
  if (seen != guard.value) return GuardedCopy::no_process;
  return outcome(copied, sizeof seen, length);
}

GuardedCopy write_guarded(int process, const GuardMark& guard, std::uint64_t address, const Gather& source) {
  Window here(source.slices, source.offset, source.length, 1);
  if (here.left > 0) return GuardedCopy::cut_short;
  std::uint64_t word = 0;
  here.parts[0] = {&word, sizeof word};
  const iovec remote[] = {there(guard.write_address(), sizeof word), there(address, source.length)};
  const ssize_t copied = ::process_vm_writev(process, here.parts.data(), here.count, remote, 2, 0);
  return outcome(copied, sizeof word, source.length);
}

}  // namespace cluster::os
