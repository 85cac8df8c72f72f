// Maps memory of another process of this user into this process, so that copies are plain loads and stores.
// This works if the other process has mapped the memory with MAP_SHARED from a file in memory (memfd, POSIX
// or System V shared memory, hugetlbfs).
//
// The file: the maps of the other process in /proc identify the file by device and inode. We open it through
// map_files of that process (which needs privileges), through its path, or through an open descriptor of that
// process. We use the opened file only if its device and inode are those in the maps. We do not map files on
// disk, because reading their pages may fail.
//
// The process: /proc/PID may belong to a later process with the same PID, or to a process of another PID
// namespace. Therefore we open the directory /proc/PID once, and everything else relative to it. An open
// directory /proc/PID always refers to the same process. The guard page (os/process_memory.h) shows whether
// this process is the right one. We check the guard page after all other steps in /proc. If the process still
// has the page then, it was the right process during the earlier steps.
//
// The pages: the file may have no page at an address yet. If the system has no memory for a new page, an
// access kills this process with SIGBUS. Therefore we populate each part before its first use, with a call
// that reports an error instead (Linux 5.14). A populated page remains until a process truncates the file.
// Applications must not truncate registered memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "os/process_memory.h"

namespace cluster::os {

class PeerMapping {
 public:
  PeerMapping() = default;
  PeerMapping(PeerMapping&& other) noexcept { *this = std::move(other); }
  PeerMapping& operator=(PeerMapping&& other) noexcept {
    std::swap(window_, other.window_);
    std::swap(range_, other.range_);
    std::swap(populated_, other.populated_);
    std::swap(unpopulated_, other.unpopulated_);
    std::swap(ready_bytes_, other.ready_bytes_);
    return *this;
  }
  ~PeerMapping();

  /// Returns false if /proc is missing or shows another PID namespace. In this case open() cannot work.
  static bool possible();
  /// Maps the `length` bytes at `address` in the memory of another process. Returns an empty mapping on
  /// failure. open() works only if all bytes belong to one file in memory, which the process has mapped with
  /// MAP_SHARED for reading and writing.
  static PeerMapping open(int process, const GuardMark& guard, std::uint64_t address, std::uint64_t length);

  explicit operator bool() const { return !range_.empty(); }
  /// Does the same as at() if the whole range is populated. Otherwise returns null.
  std::byte* ready_at(std::uint64_t offset, std::size_t length) const {
    return contains(ready_bytes_, offset, length) ? range_.data() + offset : nullptr;
  }
  /// Returns a pointer to a part of the range, where the caller may read and write `length` bytes. `length`
  /// must not be 0. Returns null if the part is not inside the range, or if there is no memory for it.
  std::byte* at(std::uint64_t offset, std::size_t length) {
    if (!contains(range_.size(), offset, length)) return nullptr;
    const std::size_t last = (offset + length - 1) / kChunkBytes;
    for (std::size_t chunk = offset / kChunkBytes; chunk <= last; ++chunk) {
      if (!populated_[chunk] && !populate(chunk, last)) [[unlikely]]
        return nullptr;
    }
    return range_.data() + offset;
  }
  /// Returns the populated part of the range around the `length` bytes at `offset`, for which at() has
  /// returned a pointer. Sets `offset` to the position of this part in the range.
  Bytes populated_around(std::uint64_t& offset, std::size_t length) const {
    const std::uint64_t end =
        ready_bytes_ != 0
            ? ready_bytes_
            : std::min<std::uint64_t>((offset + length + kChunkBytes - 1) / kChunkBytes * kChunkBytes,
                                      range_.size());
    offset = ready_bytes_ != 0 ? 0 : offset / kChunkBytes * kChunkBytes;
    return range_.subspan(offset, end - offset);
  }

 private:
  static constexpr std::size_t kChunkBytes = 64 * 1024;

  static bool contains(std::size_t size, std::uint64_t offset, std::size_t length) {
    return length <= size && offset <= size - length;
  }
  bool populate(std::size_t first, std::size_t last);

  Bytes window_;  ///< the mapped memory: whole pages that include `range_`
  Bytes range_;
  std::vector<bool> populated_;  ///< one bit for each chunk of the range
  std::size_t unpopulated_ = 0;  ///< number of chunks that are not populated yet
  std::size_t ready_bytes_ = 0;  ///< the size of the range once all chunks are populated, otherwise 0
};

}  // namespace cluster::os
