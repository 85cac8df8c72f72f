#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "os/descriptor.h"

namespace cluster::os {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
#ifdef F_SEAL_FUTURE_WRITE
constexpr int kSealedToOthers = F_SEAL_FUTURE_WRITE;
#else
constexpr int kSealedToOthers = 0x10;  // the kernel's value, which older headers lack
#endif

Bytes map_shared(const Descriptor& file, std::size_t size, std::string& reason,
                 int protection = PROT_READ | PROT_WRITE) {
  void* address = ::mmap(nullptr, size, protection, MAP_SHARED, file.number(), 0);
  if (address != MAP_FAILED) return as_bytes(address, size);
  reason = failed("mmap");
  return {};
}

/// Creates, maps and seals memory. The function maps the memory before it adds the seals, because the seal
/// against writing applies only to later mappings.
Bytes create_sealed(std::size_t size, int seals, Descriptor& file, std::string& reason) {
  Descriptor fresh(::memfd_create("cluster-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fresh || ::ftruncate(fresh.number(), static_cast<off_t>(size)) != 0) {
    reason = failed(fresh ? "ftruncate" : "memfd_create");
    return {};
  }
  const Bytes bytes = map_shared(fresh, size, reason);
  if (bytes.empty()) return {};
  if (::fcntl(fresh.number(), F_ADD_SEALS, seals) != 0) {
    reason = failed("sealing");
    ::munmap(bytes.data(), size);
    return {};
  }
  file = std::move(fresh);
  return bytes;
}

/// Called after a failed system call. Throws if the system is short of memory or descriptors, because in this
/// case the same call may succeed later.
void throw_if_short_of_memory() {
  if (errno == ENOMEM || errno == ENFILE || errno == EAGAIN) throw std::bad_alloc();
}

/// Returns true if the memory has this size and is sealed against resizing.
bool fits(const Descriptor& file, std::size_t size, std::string& reason) {
  const int seals = ::fcntl(file.number(), F_GET_SEALS);
  if (seals < 0) throw_if_short_of_memory();
  if (seals < 0 || (seals & kSeals) != kSeals) {
    reason = "the memory is not sealed against resizing";
    return false;
  }
  struct stat status;
  if (::fstat(file.number(), &status) != 0) {
    throw_if_short_of_memory();
    reason = failed("fstat");
    return false;
  }
  if (status.st_size != static_cast<off_t>(size)) {
    reason = "the memory has " + std::to_string(status.st_size) + " bytes instead of " + std::to_string(size);
    return false;
  }
  return true;
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

SharedMemory SharedMemory::create(std::size_t size, Descriptor& file, std::string& reason) {
  return SharedMemory(create_sealed(size, kSeals, file, reason));
}

SharedMemory SharedMemory::create_unwritable(std::size_t size, Descriptor& file, std::string& reason) {
  return SharedMemory(create_sealed(size, kSeals | kSealedToOthers, file, reason));
}

SharedMemory SharedMemory::map(const Descriptor& file, std::size_t size, std::string& reason) {
  if (!fits(file, size, reason)) return {};
  const Bytes bytes = map_shared(file, size, reason);
  if (bytes.empty()) throw_if_short_of_memory();
  return SharedMemory(bytes);
}

SharedMemory SharedMemory::map_to_read(const Descriptor& file, std::size_t size, std::string& reason) {
  return fits(file, size, reason) ? SharedMemory(map_shared(file, size, reason, PROT_READ)) : SharedMemory();
}

}  // namespace cluster::os
