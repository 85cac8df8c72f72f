// Memory that several processes share (a memfd). The memory has no name in any file system. The kernel frees
// it when no process has it open or mapped. The creator seals the size. Therefore no process can truncate the
// memory and so cause a SIGBUS in a process that has mapped it. The receiver accepts memory only if its size
// is sealed and exactly as announced.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "os/descriptor.h"

namespace cluster::os {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  /// Creates and maps memory of `size` bytes, filled with zeros and sealed against resizing. The caller sends
  /// `file` to the other processes. On failure, returns an empty object and writes the cause to `reason`.
  static SharedMemory create(std::size_t size, Descriptor& file, std::string& reason);
  /// Like create(), but other processes can map the memory only for reading.
  static SharedMemory create_unwritable(std::size_t size, Descriptor& file, std::string& reason);
  /// Maps memory that another process has created. On failure, returns an empty object and writes the cause
  /// to `reason`. Throws std::bad_alloc if the system is short of memory or descriptors.
  static SharedMemory map(const Descriptor& file, std::size_t size, std::string& reason);
  /// Like map(), but maps the memory only for reading. Does not throw if only mmap() fails, whatever the
  /// cause.
  static SharedMemory map_to_read(const Descriptor& file, std::size_t size, std::string& reason);

  explicit operator bool() const { return !bytes_.empty(); }
  Bytes bytes() const { return bytes_; }

 private:
  explicit SharedMemory(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace cluster::os
