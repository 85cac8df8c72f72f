#include "os/peer_mapping.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kLineMax = 4096 + 128;
#ifdef MADV_POPULATE_WRITE
constexpr int kPopulate = MADV_POPULATE_WRITE;
#else
constexpr int kPopulate = 23;  // the kernel's value, which older headers lack
#endif

struct CloseStream {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// The file that another process has mapped at a range of its memory.
struct FileOfRange {
  std::string map;   ///< name of the map in /proc/PID/map_files
  std::string path;  ///< empty if the map has no path
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t offset = 0;  ///< position of the range's first byte in the file
};

/// One line of /proc/PID/maps.
struct Map {
  std::uint64_t begin = 0, end = 0, offset = 0;
  char access[5] = {};
  unsigned major = 0, minor = 0;
  std::uint64_t inode = 0;
  int path_at = 0;

  bool parse(const char* line) {
    return std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin, &end,
                       access, &offset, &major, &minor, &inode, &path_at) == 7;
  }
  bool shared() const { return access[0] == 'r' && access[1] == 'w' && access[3] == 's' && inode != 0; }
  /// Returns true if this map begins where the other one ends, both in memory and in the same file.
  bool continues(const Map& other) const {
    return begin == other.end && inode == other.inode && major == other.major && minor == other.minor &&
           offset == other.offset + (other.end - other.begin);
  }
};

Descriptor open_in(const Descriptor& directory, const std::string& name, int flags) {
  return Descriptor(::openat(directory.number(), name.c_str(), flags | O_CLOEXEC));
}

/// Returns a copy of the descriptor. The caller gives the copy to a stream, which closes it.
int duplicate(const Descriptor& file) { return ::fcntl(file.number(), F_DUPFD_CLOEXEC, 0); }

/// Finds the file that the process has mapped at the range. The range may span several maps, because each
/// call of mprotect or madvise may split a map.
bool find_file(const Descriptor& process, std::uint64_t address, std::uint64_t length, FileOfRange& found) {
  Descriptor file = open_in(process, "maps", O_RDONLY);
  if (!file) return false;
  const std::unique_ptr<std::FILE, CloseStream> maps(::fdopen(duplicate(file), "r"));
  if (maps == nullptr) return false;
  std::vector<char> buffer(kLineMax);
  Map before;
  while (const char* const line = std::fgets(buffer.data(), static_cast<int>(buffer.size()), maps.get())) {
    Map map;
    if (!map.parse(line)) return false;
    if (map.end <= address) continue;
    if (!map.shared()) return false;
    if (before.end == 0) {
      if (map.begin > address) return false;
      found.map.assign(line, std::strcspn(line, " "));
      found.path.assign(line + map.path_at, std::strcspn(line + map.path_at, "\n"));
      found.device = makedev(map.major, map.minor);
      found.inode = map.inode;
      found.offset = map.offset + (address - map.begin);
    } else if (!map.continues(before)) {
      return false;
    }
    if (map.end - address >= length) return true;
    before = map;
  }
  return false;
}

bool is_it(const struct stat& status, const FileOfRange& file) {
  return S_ISREG(status.st_mode) && status.st_dev == file.device && status.st_ino == file.inode;
}

/// Opens the name only if it refers to `file`, because opening a file can have effects, for example if the
/// file is a device.
Descriptor open_if_it(const Descriptor& directory, const std::string& name, const FileOfRange& file) {
  struct stat status;
  if (::fstatat(directory.number(), name.c_str(), &status, 0) != 0 || !is_it(status, file)) return {};
  Descriptor opened = open_in(directory, name, O_RDWR);
  if (!opened || ::fstat(opened.number(), &status) != 0 || !is_it(status, file)) return {};
  return opened;
}

Descriptor open_file(const Descriptor& process, const FileOfRange& file) {
  if (Descriptor opened = open_if_it(process, "map_files/" + file.map, file)) return opened;
  if (file.path.starts_with('/')) {
    if (Descriptor opened = open_if_it(process, "root" + file.path, file)) return opened;
  }
  const Descriptor list = open_in(process, "fd", O_RDONLY | O_DIRECTORY);
  if (!list) return {};
  const std::unique_ptr<DIR, CloseStream> names(::fdopendir(duplicate(list)));
  while (const dirent* const entry = names != nullptr ? ::readdir(names.get()) : nullptr) {
    if (Descriptor opened = open_if_it(list, entry->d_name, file)) return opened;
  }
  return {};
}

bool lies_in_memory(const Descriptor& file) {
  struct statfs system;
  return ::fstatfs(file.number(), &system) == 0 &&
         (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

bool guarded_by(const Descriptor& process, const GuardMark& guard) {
  const Descriptor memory = open_in(process, "mem", O_RDONLY);
  std::uint64_t value = 0;
  return memory &&
         ::pread(memory.number(), &value, sizeof value, static_cast<off_t>(guard.address)) == sizeof value &&
         value == guard.value;
}

}  // namespace

bool PeerMapping::possible() {
  char number[32];
  const ssize_t size = ::readlink("/proc/self", number, sizeof number);
  return size > 0 && std::string_view(number, static_cast<std::size_t>(size)) == std::to_string(::getpid());
}

PeerMapping PeerMapping::open(int process, const GuardMark& guard, std::uint64_t address,
                              std::uint64_t length) {
  PeerMapping mapping;
  const Descriptor directory(
      ::open(("/proc/" + std::to_string(process)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  FileOfRange found;
  if (!directory || length == 0 || address + length < address ||
      !find_file(directory, address, length, found))
    return mapping;
  const Descriptor file = open_file(directory, found);
  struct stat status;
  if (!file || !lies_in_memory(file) || ::fstat(file.number(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) < found.offset + length || !guarded_by(directory, guard)) {
    return mapping;
  }
  // The kernel maps a file on hugetlbfs only in whole huge pages. Their size is the file's st_blksize.
  const std::uint64_t unit =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(status.st_blksize), kPageBytes);
  const std::uint64_t before = found.offset % unit;
  const std::size_t size = (before + length + unit - 1) / unit * unit;
  void* const window = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(),
                              static_cast<off_t>(found.offset - before));
  if (window == MAP_FAILED) return mapping;
  ::madvise(window, size, MADV_DONTFORK);
  ::madvise(window, size, MADV_DONTDUMP);
  mapping.window_ = as_bytes(window, size);
  mapping.range_ = mapping.window_.subspan(before, length);
  mapping.unpopulated_ = (length + kChunkBytes - 1) / kChunkBytes;
  mapping.populated_.resize(mapping.unpopulated_);
  if (!mapping.populate(0, 0)) return {};  // the kernel is too old, or has no memory
  return mapping;
}

PeerMapping::~PeerMapping() {
  if (!window_.empty()) ::munmap(window_.data(), window_.size());
}

/// Populates the chunks from `first` to `last`, inclusive, with one system call.
bool PeerMapping::populate(std::size_t first, std::size_t last) {
  const std::size_t begin = first * kChunkBytes;
  const std::size_t end = std::min((last + 1) * kChunkBytes, range_.size());
  const std::size_t skew = reinterpret_cast<std::uintptr_t>(range_.data() + begin) % kPageBytes;
  if (::madvise(range_.data() + begin - skew, end - begin + skew, kPopulate) != 0) return false;
  for (std::size_t chunk = first; chunk <= last; ++chunk) {
    unpopulated_ -= !populated_[chunk];
    populated_[chunk] = true;
  }
  if (unpopulated_ == 0) ready_bytes_ = range_.size();
  return true;
}

}  // namespace cluster::os
