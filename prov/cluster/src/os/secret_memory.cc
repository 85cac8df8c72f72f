#include "os/secret_memory.h"

#include <sys/mman.h>

#include <cstring>

namespace cluster::os {
namespace {

constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;

}  // namespace

void* allocate_secret(std::size_t size) {
  void* const memory = mmap(nullptr, size, kProtection, kKind, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, size, MADV_DONTDUMP) != 0) {
    munmap(memory, size);
    return nullptr;
  }
  mlock(memory, size);  // the limit of locked memory may forbid it
  return memory;
}

void release_secret(void* memory, std::size_t size) {
  explicit_bzero(memory, size);
  munmap(memory, size);
}

}  // namespace cluster::os
