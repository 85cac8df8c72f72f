// Maps memory of another process of this user here as well, so that copies are plain loads and stores. This
// works if the other process itself maps the memory shared, from a file that lies in memory (memfd, POSIX or
// System V shared memory, hugetlbfs).
//
// The file. The other process's maps in /proc say which file it is (device and inode). We open the file
// through map_files of that process (privileged), its path, or the open descriptors of that process. We take
// it only if device and inode are the same. We leave files of other file systems alone, because reading their
// pages may fail.
//
// The process. /proc/PID may belong to another process by now, or to one of another PID namespace. So we open
// everything below one directory, which stands for one process for ever. The guard page (os/process_memory.h)
// shows that it is the right process. We look for that page last: a process that has it then has had it all
// along.
//
// Pages. If the file lacks a page, and the system has no memory for it, touching it ends this process by
// SIGBUS. So we populate ranges before their first use, by a call that fails instead (Linux 5.14). Populated
// pages stay, unless a process truncates the file. Applications must not truncate registered memory.
#pragma once

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
    return *this;
  }
  ~PeerMapping();

  /// Returns false if /proc is missing, or shows another PID namespace. Then open() would find nothing.
  static bool possible();
  /// Maps `length` bytes from `address` of a process. Returns an empty mapping unless all of them are in one
  /// file in memory that the process maps to read and write.
  static PeerMapping open(int process, const GuardMark& guard, std::uint64_t address, std::uint64_t length);

  explicit operator bool() const { return !range_.empty(); }
  /// True if every part of the range can be read and written.
  bool ready() const { return unpopulated_ == 0 && !range_.empty(); }
  std::byte* begin() const { return range_.data(); }
  /// Returns a part of the range, which the caller may read and write. The part must lie inside the range.
  /// Returns null if there is no memory for the part.
  std::byte* at(std::uint64_t offset, std::size_t length) {
    const std::size_t last = (offset + length - 1) / kChunkBytes;
    for (std::size_t chunk = offset / kChunkBytes; chunk <= last; ++chunk) {
      if (!populated_[chunk] && !populate(chunk, last)) [[unlikely]]
        return nullptr;
    }
    return range_.data() + offset;
  }

 private:
  static constexpr std::size_t kChunkBytes = 64 * 1024;

  bool populate(std::size_t first, std::size_t last);

  Bytes window_;  ///< what is mapped: whole pages around `range_`
  Bytes range_;
  std::vector<bool> populated_;  ///< one bit for each chunk of the range
  std::size_t unpopulated_ = 0;  ///< how many chunks are not populated
};

}  // namespace cluster::os
