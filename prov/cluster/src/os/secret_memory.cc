#include "os/secret_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <mutex>

#include "base/lock.h"

namespace cluster::os {
namespace {

constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kKind = MAP_PRIVATE | MAP_ANONYMOUS;

const volatile std::uint32_t* make_mark() {
  void* const memory = mmap(nullptr, sizeof(std::uint32_t), kProtection, kKind, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, sizeof(std::uint32_t), MADV_WIPEONFORK) != 0) {
    munmap(memory, sizeof(std::uint32_t));
    return nullptr;
  }
  auto* const word = static_cast<volatile std::uint32_t*>(memory);
  *word = 1;
  return word;
}

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

const volatile std::uint32_t* fork_mark() {
  static SpinLock lock;
  static const volatile std::uint32_t* mark = nullptr;
  const std::lock_guard guard(lock);
  if (mark == nullptr || *mark == 0) mark = make_mark();  // a child begins a family of its own
  return mark;
}

}  // namespace cluster::os
