// Memory shared by two processes: a memfd, which has no name in any file system and goes away with its last
// holder. Its creator seals the size, so truncation cannot send a SIGBUS to a process that maps it. The
// receiver accepts it only with those seals and exactly the announced size.
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

  /// Creates memory: zero, untouched, sealed. The caller sends `file` to the other process. Returns an empty
  /// object on failure; `reason` says why.
  static SharedMemory create(std::size_t size, Descriptor& file, std::string& reason);
  /// The same, but other processes can map the memory only to read it.
  static SharedMemory create_unwritable(std::size_t size, Descriptor& file, std::string& reason);
  /// Maps memory that another process created. Returns an empty object on failure; `reason` says why. Throws
  /// std::bad_alloc if the system has no memory now.
  static SharedMemory map(const Descriptor& file, std::size_t size, std::string& reason);
  /// The same, but maps the memory only to read it.
  static SharedMemory map_to_read(const Descriptor& file, std::size_t size, std::string& reason);

  explicit operator bool() const { return !bytes_.empty(); }
  Bytes bytes() const { return bytes_; }

 private:
  explicit SharedMemory(Bytes bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace cluster::os
