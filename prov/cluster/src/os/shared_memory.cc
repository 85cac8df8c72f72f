#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace cluster::os {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string failed(const char* call) {
  return std::string(call) + ": " + std::generic_category().message(errno);
}

Bytes map_shared(const Descriptor& file, std::size_t size, std::string& reason) {
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (address != MAP_FAILED) return as_bytes(address, size);
  reason = failed("mmap");
  return {};
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

SharedMemory SharedMemory::create(std::size_t size, Descriptor& file, std::string& reason) {
  Descriptor fresh(::memfd_create("cluster-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fresh) {
    reason = failed("memfd_create");
    return {};
  }
  if (::ftruncate(fresh.number(), static_cast<off_t>(size)) != 0) {
    reason = failed("ftruncate");
    return {};
  }
  if (::fcntl(fresh.number(), F_ADD_SEALS, kSeals) != 0) {
    reason = failed("sealing");
    return {};
  }
  SharedMemory memory(map_shared(fresh, size, reason));
  if (memory) file = std::move(fresh);
  return memory;
}

SharedMemory SharedMemory::map(const Descriptor& file, std::size_t size, std::string& reason) {
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) {
    reason = "the memory is not sealed against resizing";
    return {};
  }
  struct stat status;
  if (::fstat(file.number(), &status) != 0) {
    reason = failed("fstat");
    return {};
  }
  if (status.st_size != static_cast<off_t>(size)) {
    reason = "the memory has " + std::to_string(status.st_size) + " bytes instead of " + std::to_string(size);
    return {};
  }
  return SharedMemory(map_shared(file, size, reason));
}

}  // namespace cluster::os
