// Memory of another process of this user, mapped here as well: copies to and from it are plain loads and stores. That is possible where
// the other process itself maps the memory shared, from a file that lies in memory (memfd, POSIX or System V shared memory,
// hugetlbfs).
//
// The file. The other process's maps in /proc say which file it is (device and inode). We open it through its map_files (privileged), its
// path, or its open descriptors, and take it only if device and inode are the same. Files of other file systems are left alone:
// reading their pages may fail.
//
// The process. /proc/PID may be another process by now, or one of another PID namespace. Everything is opened below one directory,
// which stands for one process for ever. The guard page (os/process_memory.h) shows that it is the right one. We look for that
// page last: a process that has it then had it before.
//
// Pages. A page that the file lacks, and cannot get, would end this process by SIGBUS. So ranges are populated before their first use, by a
// call that fails instead (Linux 5.14). Populated pages stay, unless a process cuts the file short: applications must not do that to
// registered memory.
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

  /// False: /proc is missing, or shows another PID namespace, so open() would find nothing.
  static bool possible();
  /// `length` bytes from `address` of a process; empty unless all of them are in one file in memory that the process maps to read and
  /// write.
  static PeerMapping open(int process, const GuardMark& guard, std::uint64_t address, std::uint64_t length);

  explicit operator bool() const { return !range_.empty(); }
  /// True if each part of the range can be read and written.
  bool ready() const { return unpopulated_ == 0 && !range_.empty(); }
  std::byte* begin() const { return range_.data(); }
  /// Part of the range, which must be inside, to be read and written; null if there is no memory for it.
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

  Bytes window_;  ///< what is mapped: whole pages, around ...
  Bytes range_;
  std::vector<bool> populated_;  ///< chunks of the range
  std::size_t unpopulated_ = 0;  ///< how many are not
};

}  // namespace cluster::os
